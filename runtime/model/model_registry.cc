#include "runtime/model/model_registry.h"

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/embedded_model.h"
#include "runtime/model/tiny_causal_lm.h"
#include "runtime/model/tiny_causal_lm_files.h"
#include "runtime/weights/json_file.h"

namespace folio {
namespace {

using nlohmann::json;

// A folder whose config.json has been read.
struct ModelFolder {
  std::string path;
  std::string config_path;
  json config;
};

// The last part of a path, whether or not it ends in a slash.
std::string NameOf(const std::string& folder) {
  const std::filesystem::path path =
      std::filesystem::path(folder).lexically_normal();
  return path.has_filename() ? path.filename().string()
                             : path.parent_path().filename().string();
}

absl::StatusOr<std::unique_ptr<Model>> OpenTinyCausalLm(
    const ModelFolder& folder, const ModelLimits& limits, Executor* executor) {
  FOLIO_ASSIGN_OR_RETURN(
      const TinyCausalLmConfig config,
      ParseTinyCausalLmConfig(folder.config, folder.config_path));
  FOLIO_ASSIGN_OR_RETURN(
      TinyCausalLmWeights weights,
      ReadTinyCausalLmWeights(config, folder.path + "/model.safetensors"));
  return MakeTinyCausalLm(NameOf(folder.path), config, std::move(weights),
                          limits, executor);
}

// Every architecture that Folio runs, by its name in config.json.
struct Architecture {
  std::string_view name;
  absl::StatusOr<std::unique_ptr<Model>> (*open)(const ModelFolder&,
                                                 const ModelLimits&, Executor*);
};
constexpr Architecture kArchitectures[] = {
    {"TinyCausalLM", OpenTinyCausalLm},
};

std::string SupportedArchitectures() {
  return absl::StrJoin(kArchitectures, ", ",
                       [](std::string* out, const Architecture& architecture) {
                         out->append(architecture.name);
                       });
}

absl::StatusOr<std::string> ArchitectureName(const ModelFolder& folder) {
  const auto found = folder.config.is_object()
                         ? folder.config.find("architectures")
                         : folder.config.end();
  if (found == folder.config.end() || !found->is_array() ||
      found->size() != 1 || !found->front().is_string()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.config_path,
                     ": expected an object with a key \"architectures\", a "
                     "list of one name; supported names are ",
                     SupportedArchitectures(), "."));
  }
  return found->front().get<std::string>();
}

absl::StatusOr<std::unique_ptr<Model>> OpenFolder(const std::string& path,
                                                  const ModelLimits& limits,
                                                  Executor* executor) {
  ModelFolder folder{path, path + "/config.json", {}};
  FOLIO_ASSIGN_OR_RETURN(folder.config, ReadJsonFile(folder.config_path));
  FOLIO_ASSIGN_OR_RETURN(const std::string name, ArchitectureName(folder));
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == name) {
      return architecture.open(folder, limits, executor);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      folder.config_path, ": architecture ", name,
      " is not supported; supported are ", SupportedArchitectures(), "."));
}

constexpr std::string_view kRandomPrefix = "random:";

// What `random:` can say.
struct RandomSpec {
  TinyCausalLmConfig config;
  uint64_t seed = 1;
};

absl::Status ReadRandomKey(const std::string& item, RandomSpec& spec) {
  const std::vector<std::string> parts =
      absl::StrSplit(item, absl::MaxSplits('=', 1));
  const std::string& key = parts[0];
  const std::string value = parts.size() == 2 ? parts[1] : "";
  const std::pair<std::string_view, int32_t*> numbers[] = {
      {"vocab", &spec.config.vocab_size},
      {"hidden", &spec.config.hidden_size},
      {"heads", &spec.config.num_heads},
      {"layers", &spec.config.num_layers},
      {"context", &spec.config.context_length}};
  bool known = key == "seed";
  bool read = known && absl::SimpleAtoi(value, &spec.seed);
  for (const auto& [name, number] : numbers) {
    if (key != name) continue;
    known = true;
    read = absl::SimpleAtoi(value, number);
  }
  if (read) return absl::OkStatus();
  return absl::InvalidArgumentError(
      known ? absl::StrCat("--model random: ", key, " is \"", value,
                           "\"; expected a whole number.")
            : absl::StrCat("--model random: \"", item,
                           "\" is not one of vocab, hidden, heads, layers, "
                           "context, seed, followed by = and a number."));
}

absl::StatusOr<RandomSpec> ParseRandomSpec(const std::string& items) {
  // One f32 of each: 16 GiB, and as much again while they are packed.
  constexpr int64_t kMaxParameters = int64_t{1} << 32;
  RandomSpec spec;
  for (const std::string& item : std::vector<std::string>(
           absl::StrSplit(items, ',', absl::SkipEmpty()))) {
    FOLIO_RETURN_IF_ERROR(ReadRandomKey(item, spec));
  }
  FOLIO_RETURN_IF_ERROR(ValidateConfig(spec.config));
  const int64_t parameters = NumParameters(spec.config);
  if (parameters > kMaxParameters) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model random: ", parameters, " parameters; at most ",
                     kMaxParameters, " are allowed."));
  }
  return spec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> OpenModel(const std::string& spec,
                                                 const ModelLimits& limits,
                                                 Executor* executor) {
  if (spec.empty()) return MakeEmbeddedModel(limits, executor);
  if (!spec.starts_with(kRandomPrefix)) {
    return OpenFolder(spec, limits, executor);
  }
  FOLIO_ASSIGN_OR_RETURN(const RandomSpec random,
                         ParseRandomSpec(spec.substr(kRandomPrefix.size())));
  return MakeTinyCausalLm(spec, random.config,
                          RandomTinyCausalLmWeights(random.config, random.seed),
                          limits, executor);
}

}  // namespace folio
