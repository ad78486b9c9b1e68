// Qwen 2 and 2.5 (Yang et al., "Qwen2 Technical Report", 2024): Llama with
// biases in q, k and v.

#include "runtime/base/status_macros.h"
#include "runtime/model/family.h"
#include "runtime/model/llama_parts.h"

namespace folio {
namespace {

DecoderConfig Defaults() {
  DecoderConfig config = LlamaDefaults();
  config.norm_epsilon = 1e-6;
  config.qkv_bias = true;
  return config;
}

absl::Status ReadHf(const HfConfig& hf, DecoderConfig& config) {
  FOLIO_RETURN_IF_ERROR(ReadLlamaHf(hf, config));
  return ReadWindowOfAllLayers(hf, config);
}

}  // namespace

extern const Family kQwen2;
const Family kQwen2 = {.architecture = "Qwen2ForCausalLM",
                       .short_name = "qwen2",
                       .defaults = Defaults,
                       .read_hf = ReadHf,
                       .read_gguf = ReadLlamaGguf,
                       .hf_names = LlamaHfNames,
                       .gguf_names = GgufNames};

}  // namespace folio
