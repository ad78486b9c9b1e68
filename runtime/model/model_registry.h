// From what a user writes after --model to a model.

#ifndef RUNTIME_MODEL_MODEL_REGISTRY_H_
#define RUNTIME_MODEL_MODEL_REGISTRY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/executor.h"
#include "runtime/model/model.h"

namespace folio {

// `spec` is one of
//
//   (empty)                       the model that Folio carries in itself
//   random:vocab=128,hidden=64    a TinyCausalLM with random weights; keys are
//                                 vocab, hidden, heads, layers, context, seed,
//                                 each with a default
//   anything else                 a folder in the Hugging Face layout:
//                                 config.json and model.safetensors
//
// INVALID_ARGUMENT, or the status of reading a file, says what was found and
// what is supported. The executor must outlive the model.
absl::StatusOr<std::unique_ptr<Model>> OpenModel(const std::string& spec,
                                                 const ModelLimits& limits,
                                                 Executor* executor);

}  // namespace folio

#endif  // RUNTIME_MODEL_MODEL_REGISTRY_H_
