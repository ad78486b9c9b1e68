// From where a model is to a model that computes.

#ifndef RUNTIME_MODEL_MODEL_REGISTRY_H_
#define RUNTIME_MODEL_MODEL_REGISTRY_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/element_type.h"
#include "runtime/base/executor.h"
#include "runtime/model/decoder.h"
#include "runtime/model/decoder_config.h"
#include "runtime/model/decoder_tensors.h"
#include "runtime/model/model.h"
#include "runtime/model/model_location.h"
#include "runtime/model/weight_source.h"

namespace folio {

// A model whose files have been checked and whose weights have not been read.
struct ModelSource {
  std::string name;
  DecoderConfig config;
  DecoderNames names;
  std::unique_ptr<WeightSource> weights;
};

// Reads the configuration and checks every tensor's name, shape and type
// against it. INVALID_ARGUMENT names the file, the key or tensor, what was
// found and what is expected or supported; or a status of reading a file.
absl::StatusOr<ModelSource> OpenModelSource(const ModelLocation& location);

// What a user asks for; nothing means "auto".
struct WantedTypes {
  std::optional<ElementType> weights;
  std::optional<ElementType> kv;
};

// Weights: f32 where the files have f32 or f16 (bf16 would lose digits), else
// bf16 where the machine multiplies that fast, else f32. K/V: f32 with weights
// of f32, else bf16. Never integers, which are faster but round activations to
// 8 bits: that is the user's choice.
ModelTypes ChooseTypes(const ModelSource& source, const WantedTypes& wanted);

// Why ChooseTypes chose what it did, in a sentence for the log.
std::string ExplainTypes(const ModelSource& source, const WantedTypes& wanted);

// Reads the weights. The executor must outlive the model.
std::unique_ptr<Model> LoadModel(const ModelSource& source,
                                 const ModelTypes& types,
                                 const ModelLimits& limits, Executor* executor,
                                 const LoadProgress& progress = {});

// All of it, for tests and programs that have no tokenizer to open; see
// FindModel for `spec`.
absl::StatusOr<std::unique_ptr<Model>> OpenModel(
    const std::string& spec, const ModelLimits& limits, Executor* executor,
    const WantedTypes& wanted = {});

}  // namespace folio

#endif  // RUNTIME_MODEL_MODEL_REGISTRY_H_
