// TinyCausalLM, a small pre-norm transformer without positions:
//
//   x = token_emb[token]
//   each layer:  x += out(attention(qkv(LayerNorm(x))))
//                x += ffn.2(GELU(ffn.0(LayerNorm(x))))
//   logits = lm_head(LayerNorm(x))
//
// Every product but lm_head has a bias; rows of qkv are q, then k, then v; GELU
// is the one with erf; the epsilon of LayerNorm is 1e-5.

#include "runtime/base/status_macros.h"
#include "runtime/model/family.h"

namespace folio {
namespace {

DecoderConfig Defaults() {
  DecoderConfig config;
  config.vocab_size = 128;
  config.context_length = 4096;
  config.hidden_size = 64;
  config.num_layers = 2;
  config.num_heads = 4;
  config.norm = NormKind::kLayerNorm;
  config.positions = PositionKind::kNone;
  config.ffn = FfnKind::kGeluErf;
  config.qkv_bias = true;
  config.out_bias = true;
  config.ffn_bias = true;
  return config;
}

absl::Status ReadHf(const HfConfig& hf, DecoderConfig& config) {
  FOLIO_RETURN_IF_ERROR(hf.Read("vocab_size", config.vocab_size));
  FOLIO_RETURN_IF_ERROR(hf.Read("hidden_size", config.hidden_size));
  FOLIO_RETURN_IF_ERROR(hf.Read("num_heads", config.num_heads));
  FOLIO_RETURN_IF_ERROR(hf.Read("num_layers", config.num_layers));
  return hf.ReadOptional("context_length", config.context_length);
}

DecoderNames HfNames() {
  return {.token_embedding = "token_emb",
          .attn_norm = "blocks.$0.attn_norm",
          .qkv = "blocks.$0.attn.qkv",
          .out = "blocks.$0.attn.out",
          .ffn_norm = "blocks.$0.ffn_norm",
          .up = "blocks.$0.ffn.0",
          .down = "blocks.$0.ffn.2",
          .final_norm = "norm",
          .head = "lm_head"};
}

}  // namespace

extern const Family kTinyCausalLm;
const Family kTinyCausalLm = {.architecture = "TinyCausalLM",
                              .short_name = "tiny",
                              .defaults = Defaults,
                              .read_hf = ReadHf,
                              .read_gguf = nullptr,
                              .hf_names = HfNames,
                              .gguf_names = nullptr};

}  // namespace folio
