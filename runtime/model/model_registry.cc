#include "runtime/model/model_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/family.h"
#include "runtime/model/model_config.h"
#include "runtime/model/random_model.h"

namespace folio {
namespace {

absl::StatusOr<ModelSource> OpenFiles(const std::string& name,
                                      const ModelFiles& files) {
  FOLIO_ASSIGN_OR_RETURN(const FamilyConfig read, ReadHfModelConfig(files));
  ModelSource source{name, read.config, read.family->hf_names(), nullptr};
  FOLIO_ASSIGN_OR_RETURN(TensorTable table, files.ReadTensors());
  AdaptPrefix(table, source.names);
  FOLIO_RETURN_IF_ERROR(
      CheckTensors(table, ExpectedTensors(source.config, source.names),
                   source.config, source.names, files.path()));
  source.weights = MakeFileWeights(std::move(table));
  return source;
}

absl::StatusOr<ModelSource> OpenGguf(const std::string& name,
                                     const GgufFile& file) {
  FOLIO_ASSIGN_OR_RETURN(const FamilyConfig read, ReadGgufModelConfig(file));
  ModelSource source{name, read.config, read.family->gguf_names(), nullptr};
  FOLIO_RETURN_IF_ERROR(
      CheckTensors(file.tensors(), ExpectedTensors(source.config, source.names),
                   source.config, source.names, file.path()));
  source.weights = MakeFileWeights(file.tensors());
  return source;
}

absl::StatusOr<ModelSource> OpenRandom(const std::string& name,
                                       const std::string& items) {
  FOLIO_ASSIGN_OR_RETURN(const RandomModel random, ParseRandomModel(items));
  ModelSource source{name, random.config, random.family->hf_names(), nullptr};
  source.weights = MakeRandomWeights(
      ExpectedTensors(source.config, source.names), source.names, random.seed);
  return source;
}

ElementType AutoWeightsType(const ModelSource& source) {
  return source.weights->is_stored_as_float() ? ElementType::kF32
                                              : ElementType::kBf16;
}

}  // namespace

absl::StatusOr<ModelSource> OpenModelSource(const ModelLocation& location) {
  if (location.random.has_value()) {
    return OpenRandom(location.name, *location.random);
  }
  if (location.gguf != nullptr) {
    return OpenGguf(location.name, *location.gguf);
  }
  return OpenFiles(location.name, *location.files);
}

ModelTypes ChooseTypes(const ModelSource& source, const WantedTypes& wanted) {
  ModelTypes types;
  types.weights = wanted.weights.value_or(AutoWeightsType(source));
  types.kv = wanted.kv.value_or(types.weights == ElementType::kF32
                                    ? ElementType::kF32
                                    : ElementType::kBf16);
  return types;
}

std::string ExplainTypes(const ModelSource& source, const WantedTypes& wanted) {
  const ModelTypes types = ChooseTypes(source, wanted);
  std::string why = "as asked for";
  if (!wanted.weights.has_value()) {
    why = source.weights->is_stored_as_float()
              ? "auto: the files have f32 or f16, and bf16 would lose digits"
              : "auto: the files are quantised or bf16";
    absl::StrAppend(&why, "; int8 and int4 are faster and less exact");
  }
  const bool rounds_more = types.kv != ElementType::kF32;
  return absl::StrCat("weights in ", std::string(NameOf(types.weights)), " (",
                      why, "), K/V in ", std::string(NameOf(types.kv)),
                      wanted.kv.has_value() ? " (as asked for)"
                      : rounds_more ? " (auto: weights are rounded, too)"
                                    : " (auto: as the weights)");
}

std::unique_ptr<Model> LoadModel(const ModelSource& source,
                                 const ModelTypes& types,
                                 const ModelLimits& limits, Executor* executor,
                                 const LoadProgress& progress) {
  return MakeDecoder(source.name, source.config, source.names, *source.weights,
                     types, limits, executor, progress);
}

absl::StatusOr<std::unique_ptr<Model>> OpenModel(const std::string& spec,
                                                 const ModelLimits& limits,
                                                 Executor* executor,
                                                 const WantedTypes& wanted) {
  FOLIO_ASSIGN_OR_RETURN(const ModelLocation location, FindModel(spec));
  FOLIO_ASSIGN_OR_RETURN(const ModelSource source, OpenModelSource(location));
  return LoadModel(source, ChooseTypes(source, wanted), limits, executor);
}

}  // namespace folio
