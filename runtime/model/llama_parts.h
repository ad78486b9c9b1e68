// What Llama and the families that came from it read alike.

#ifndef RUNTIME_MODEL_LLAMA_PARTS_H_
#define RUNTIME_MODEL_LLAMA_PARTS_H_

#include "absl/status/status.h"
#include "runtime/model/config_reader.h"
#include "runtime/model/decoder_config.h"
#include "runtime/model/decoder_tensors.h"

namespace folio {

// RmsNorm, rotary positions, SwiGLU, no biases; small sizes.
DecoderConfig LlamaDefaults();

// The sizes, the norm, the rotary positions and their scaling, whether the head
// is tied. INVALID_ARGUMENT for another activation or scaling.
absl::Status ReadLlamaHf(const HfConfig& hf, DecoderConfig& config);
absl::Status ReadLlamaGguf(const GgufConfig& gguf, DecoderConfig& config);

// The names of the Hugging Face models.
DecoderNames LlamaHfNames();

// A window that some layers have and others don't is refused: every layer's
// K/V is in the same pages. `layer_types`, where it is there, says what each
// layer is; else `max_window_layers` says from which layer on there is one.
absl::Status ReadWindowOfAllLayers(const HfConfig& hf, DecoderConfig& config);

}  // namespace folio

#endif  // RUNTIME_MODEL_LLAMA_PARTS_H_
