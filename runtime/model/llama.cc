// Llama (Touvron et al., "LLaMA: Open and Efficient Foundation Language
// Models", 2023; "Llama 2", 2023; "The Llama 3 Herd of Models", 2024):
//
//   x = embed_tokens[token]
//   each layer:  h = RMSNorm(x)
//                x += o(attention(rope(q(h)), rope(k(h)), v(h)))
//                h = RMSNorm(x)
//                x += down(silu(gate(h)) * up(h))
//   logits = lm_head(RMSNorm(x))
//
// with fewer KV heads than heads since Llama 2. In GGUF files the rows of q and
// k are stored for rotary pairs that are neighbours.

#include "runtime/base/status_macros.h"
#include "runtime/model/family.h"
#include "runtime/model/llama_parts.h"

namespace folio {
namespace {

absl::Status ReadHf(const HfConfig& hf, DecoderConfig& config) {
  FOLIO_RETURN_IF_ERROR(ReadLlamaHf(hf, config));
  FOLIO_RETURN_IF_ERROR(hf.ReadOptional("attention_bias", config.qkv_bias));
  config.out_bias = config.qkv_bias;
  return hf.ReadOptional("mlp_bias", config.ffn_bias);
}

DecoderNames LlamaGgufNames() {
  DecoderNames names = GgufNames();
  names.rotary_pairs_adjacent = true;
  return names;
}

}  // namespace

extern const Family kLlama;
const Family kLlama = {.architecture = "LlamaForCausalLM",
                       .short_name = "llama",
                       .defaults = LlamaDefaults,
                       .read_hf = ReadHf,
                       .read_gguf = ReadLlamaGguf,
                       .hf_names = LlamaHfNames,
                       .gguf_names = LlamaGgufNames};

}  // namespace folio
