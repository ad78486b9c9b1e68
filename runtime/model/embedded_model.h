// The model that Folio carries in itself, for a first try without files.

#ifndef RUNTIME_MODEL_EMBEDDED_MODEL_H_
#define RUNTIME_MODEL_EMBEDDED_MODEL_H_

#include <memory>

#include "runtime/base/executor.h"
#include "runtime/model/model.h"

namespace folio {

inline constexpr char kEmbeddedModelName[] = "folio-tiny";

// A TinyCausalLM with fixed random weights: it babbles. Its 128 tokens are the
// ASCII bytes; greedy decoding gives printable ones only, and never ends by
// itself. Arguments as MakeTinyCausalLm's.
std::unique_ptr<Model> MakeEmbeddedModel(const ModelLimits& limits,
                                         Executor* executor);

}  // namespace folio

#endif  // RUNTIME_MODEL_EMBEDDED_MODEL_H_
