// GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners",
// 2019):
//
//   x = wte[token] + wpe[position]
//   each layer:  x += attn.c_proj(attention(attn.c_attn(ln_1(x))))
//                x += mlp.c_proj(gelu_new(mlp.c_fc(ln_2(x))))
//   logits = wte ln_f(x)
//
// Every product has a bias; rows of c_attn are q, then k, then v. Hugging
// Face's files store products as Conv1D, [in, out].

#include "runtime/base/status_macros.h"
#include "runtime/model/family.h"

namespace folio {
namespace {

DecoderConfig Defaults() {
  DecoderConfig config;
  config.vocab_size = 256;
  config.context_length = 1024;
  config.hidden_size = 64;
  config.num_layers = 2;
  config.num_heads = 4;
  config.norm = NormKind::kLayerNorm;
  config.positions = PositionKind::kLearned;
  config.ffn = FfnKind::kGeluTanh;
  config.qkv_bias = true;
  config.out_bias = true;
  config.ffn_bias = true;
  config.tied_head = true;
  return config;
}

absl::Status ReadHf(const HfConfig& hf, DecoderConfig& config) {
  FOLIO_RETURN_IF_ERROR(hf.Read("vocab_size", config.vocab_size));
  FOLIO_RETURN_IF_ERROR(hf.Read("n_positions", config.context_length));
  FOLIO_RETURN_IF_ERROR(hf.Read("n_embd", config.hidden_size));
  FOLIO_RETURN_IF_ERROR(hf.Read("n_layer", config.num_layers));
  FOLIO_RETURN_IF_ERROR(hf.Read("n_head", config.num_heads));
  FOLIO_RETURN_IF_ERROR(hf.ReadOptional("n_inner", config.ffn_size));
  FOLIO_RETURN_IF_ERROR(
      hf.ReadOptional("layer_norm_epsilon", config.norm_epsilon));
  FOLIO_RETURN_IF_ERROR(
      hf.ReadOptional("tie_word_embeddings", config.tied_head));
  bool is_scaled = true;
  FOLIO_RETURN_IF_ERROR(hf.ReadOptional("scale_attn_weights", is_scaled));
  if (!is_scaled) {
    return Unsupported(hf.Where("scale_attn_weights"), "false", "true");
  }
  bool by_layer = false;
  FOLIO_RETURN_IF_ERROR(
      hf.ReadOptional("scale_attn_by_inverse_layer_idx", by_layer));
  if (by_layer) {
    return Unsupported(hf.Where("scale_attn_by_inverse_layer_idx"), "true",
                       "false");
  }
  std::string activation = "gelu_new";
  FOLIO_RETURN_IF_ERROR(hf.ReadOptional("activation_function", activation));
  if (activation == "gelu") {
    config.ffn = FfnKind::kGeluErf;
  } else if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    return Unsupported(hf.Where("activation_function"), activation,
                       "gelu_new, gelu_pytorch_tanh, gelu");
  }
  return absl::OkStatus();
}

absl::Status ReadGguf(const GgufConfig& gguf, DecoderConfig& config) {
  FOLIO_RETURN_IF_ERROR(gguf.Read("context_length", config.context_length));
  FOLIO_RETURN_IF_ERROR(gguf.Read("embedding_length", config.hidden_size));
  FOLIO_RETURN_IF_ERROR(gguf.Read("block_count", config.num_layers));
  FOLIO_RETURN_IF_ERROR(gguf.Read("feed_forward_length", config.ffn_size));
  FOLIO_RETURN_IF_ERROR(gguf.Read("attention.head_count", config.num_heads));
  return gguf.ReadOptional("attention.layer_norm_epsilon", config.norm_epsilon);
}

DecoderNames HfNames() {
  return {.prefix = "transformer.",
          .token_embedding = "wte",
          .position_embedding = "wpe",
          .attn_norm = "h.$0.ln_1",
          .qkv = "h.$0.attn.c_attn",
          .out = "h.$0.attn.c_proj",
          .ffn_norm = "h.$0.ln_2",
          .up = "h.$0.mlp.c_fc",
          .down = "h.$0.mlp.c_proj",
          .final_norm = "ln_f",
          .head = "lm_head",
          .transposed = true,
          .ignored = {".attn.bias", ".attn.masked_bias"}};
}

DecoderNames Gpt2GgufNames() {
  DecoderNames names = GgufNames();
  names.qkv = "blk.$0.attn_qkv";
  return names;
}

}  // namespace

extern const Family kGpt2;
const Family kGpt2 = {.architecture = "GPT2LMHeadModel",
                      .short_name = "gpt2",
                      .defaults = Defaults,
                      .read_hf = ReadHf,
                      .read_gguf = ReadGguf,
                      .hf_names = HfNames,
                      .gguf_names = Gpt2GgufNames};

}  // namespace folio
