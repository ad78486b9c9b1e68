// The decoder-only transformer that every family is.

#ifndef RUNTIME_MODEL_DECODER_H_
#define RUNTIME_MODEL_DECODER_H_

#include <memory>
#include <string>

#include "runtime/base/element_type.h"
#include "runtime/base/executor.h"
#include "runtime/model/decoder_config.h"
#include "runtime/model/decoder_tensors.h"
#include "runtime/model/decoder_weights.h"
#include "runtime/model/model.h"
#include "runtime/model/weight_source.h"

namespace folio {

// The types in which a model is kept in memory.
struct ModelTypes {
  ElementType weights = ElementType::kF32;
  ElementType kv = ElementType::kF32;
};

// Loads the weights and makes the model; `name` is what clients may ask for.
// REQUIRES: a valid config, a source that has its tensors, limits of at least
// 1. The executor must outlive the model, the source need not.
std::unique_ptr<Model> MakeDecoder(
    std::string name, const DecoderConfig& config, const DecoderNames& names,
    WeightSource& source, const ModelTypes& types, const ModelLimits& limits,
    Executor* executor, const LoadProgress& progress);

}  // namespace folio

#endif  // RUNTIME_MODEL_DECODER_H_
