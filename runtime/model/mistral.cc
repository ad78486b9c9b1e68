// Mistral (Jiang et al., "Mistral 7B", 2023): Llama whose tokens see a sliding
// window of positions in every layer. Later versions have no window. (In GGUF
// files it is a "llama".)

#include "runtime/base/status_macros.h"
#include "runtime/model/family.h"
#include "runtime/model/llama_parts.h"

namespace folio {
namespace {

DecoderConfig Defaults() {
  DecoderConfig config = LlamaDefaults();
  config.window = 24;
  return config;
}

absl::Status ReadHf(const HfConfig& hf, DecoderConfig& config) {
  // What the first version had, and transformers takes without the key; null
  // means that there is none.
  config.window.reset();
  if (!hf.Mentions("sliding_window")) config.window = 4096;
  FOLIO_RETURN_IF_ERROR(ReadLlamaHf(hf, config));
  return hf.ReadOptional("sliding_window", config.window);
}

}  // namespace

extern const Family kMistral;
const Family kMistral = {.architecture = "MistralForCausalLM",
                         .short_name = "mistral",
                         .defaults = Defaults,
                         .read_hf = ReadHf,
                         .read_gguf = nullptr,
                         .hf_names = LlamaHfNames,
                         .gguf_names = nullptr};

}  // namespace folio
