// The tokenizer that belongs to a model.

#ifndef RUNTIME_ENGINE_MODEL_TOKENIZER_H_
#define RUNTIME_ENGINE_MODEL_TOKENIZER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/model/decoder_config.h"
#include "runtime/model/model_location.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {

// The one in the model's own files. A TinyCausalLM without files for one, and
// any random model, has bytes for tokens; another model without them has none,
// and takes and gives token ids only.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizerOf(
    const ModelLocation& location, const DecoderConfig& config);

}  // namespace folio

#endif  // RUNTIME_ENGINE_MODEL_TOKENIZER_H_
