// Qwen 3 (Yang et al., "Qwen3 Technical Report", 2025): Llama with a size of
// heads of its own, and an RMSNorm of each head of q and k before it is turned:
//
//   x += o(attention(rope(RMSNorm(q(h))), rope(RMSNorm(k(h))), v(h)))

#include "runtime/base/status_macros.h"
#include "runtime/model/family.h"
#include "runtime/model/llama_parts.h"

namespace folio {
namespace {

DecoderConfig Defaults() {
  DecoderConfig config = LlamaDefaults();
  config.head_dim = 32;
  config.norm_epsilon = 1e-6;
  config.qk_norm = true;
  return config;
}

absl::Status ReadHf(const HfConfig& hf, DecoderConfig& config) {
  FOLIO_RETURN_IF_ERROR(ReadLlamaHf(hf, config));
  if (config.head_dim == 0) config.head_dim = 128;  // What the authors take.
  FOLIO_RETURN_IF_ERROR(hf.ReadOptional("attention_bias", config.qkv_bias));
  config.out_bias = config.qkv_bias;
  return ReadWindowOfAllLayers(hf, config);
}

}  // namespace

extern const Family kQwen3;
const Family kQwen3 = {.architecture = "Qwen3ForCausalLM",
                       .short_name = "qwen3",
                       .defaults = Defaults,
                       .read_hf = ReadHf,
                       .read_gguf = ReadLlamaGguf,
                       .hf_names = LlamaHfNames,
                       .gguf_names = GgufNames};

}  // namespace folio
