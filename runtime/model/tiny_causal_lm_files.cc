#include "runtime/model/tiny_causal_lm_files.h"

#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/safetensors.h"
#include "runtime/weights/to_float.h"

namespace folio {
namespace {

using nlohmann::json;

absl::StatusOr<int32_t> ToInt32(const json& value, const std::string& what) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const bool fits =
      value.is_number_unsigned()
          ? value.get<uint64_t>() <= static_cast<uint64_t>(kMost)
          : value.is_number_integer() && value.get<int64_t>() >= -kMost;
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is ",
                     value.dump(-1, ' ', false, json::error_handler_t::replace)
                         .substr(0, 40),
                     "; expected a whole number of at most ", kMost, "."));
  }
  return value.get<int32_t>();
}

// Leaves `number` alone when the key is absent or null and not required.
absl::Status ReadNumber(const json& config, const char* key, bool required,
                        const std::string& path, int32_t& number) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) {
    if (!required) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": key ", key, " is missing; TinyCausalLM needs it."));
  }
  FOLIO_ASSIGN_OR_RETURN(number,
                         ToInt32(*found, absl::StrCat(path, ": ", key)));
  return absl::OkStatus();
}

absl::Status ReadEosTokens(const json& config, const std::string& path,
                           std::vector<TokenId>& tokens) {
  const auto found = config.find("eos_token_id");
  if (found == config.end() || found->is_null()) return absl::OkStatus();
  const json list = found->is_array() ? *found : json::array({*found});
  for (const json& value : list) {
    FOLIO_ASSIGN_OR_RETURN(
        const TokenId token,
        ToInt32(value, absl::StrCat(path, ": eos_token_id")));
    tokens.push_back(token);
  }
  return absl::OkStatus();
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status CheckTensor(const SafetensorsFile& file, const std::string& path,
                         const std::string& name,
                         const std::vector<int64_t>& shape) {
  const auto tensor = file.tensors().find(name);
  if (tensor != file.tensors().end()) {
    if (tensor->second.shape == shape) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": tensor ", name, " has shape ", ShapeText(tensor->second.shape),
        "; config.json says ", ShapeText(shape), "."));
  }
  const auto unreadable = file.unreadable().find(name);
  if (unreadable != file.unreadable().end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": tensor ", name, " has dtype ", unreadable->second,
                     "; expected F32, F16 or BF16."));
  }
  return absl::InvalidArgumentError(absl::StrCat(path, ": tensor ", name,
                                                 " is missing; expected shape ",
                                                 ShapeText(shape), "."));
}

// Names that the file has and the model has not.
absl::Status CheckNothingElse(const SafetensorsFile& file,
                              const std::string& path,
                              const std::set<std::string>& expected) {
  const auto check = [&](const auto& tensors) {
    for (const auto& [name, tensor] : tensors) {
      if (expected.contains(name)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor ", name, " is not one of the ", expected.size(),
          " that a TinyCausalLM of this config.json has."));
    }
    return absl::OkStatus();
  };
  FOLIO_RETURN_IF_ERROR(check(file.tensors()));
  return check(file.unreadable());
}

}  // namespace

absl::StatusOr<TinyCausalLmConfig> ParseTinyCausalLmConfig(
    const json& config, const std::string& path) {
  TinyCausalLmConfig result;
  const auto read = [&](const char* key, bool required, int32_t& number) {
    return ReadNumber(config, key, required, path, number);
  };
  FOLIO_RETURN_IF_ERROR(read("vocab_size", true, result.vocab_size));
  FOLIO_RETURN_IF_ERROR(read("hidden_size", true, result.hidden_size));
  FOLIO_RETURN_IF_ERROR(read("num_heads", true, result.num_heads));
  FOLIO_RETURN_IF_ERROR(read("num_layers", true, result.num_layers));
  FOLIO_RETURN_IF_ERROR(read("context_length", false, result.context_length));
  int32_t bos = -1;
  FOLIO_RETURN_IF_ERROR(read("bos_token_id", false, bos));
  if (config.contains("bos_token_id") && !config["bos_token_id"].is_null()) {
    result.bos_token = bos;
  }
  FOLIO_RETURN_IF_ERROR(ReadEosTokens(config, path, result.eos_tokens));
  const absl::Status valid = ValidateConfig(result);
  if (!valid.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", std::string(valid.message())));
  }
  return result;
}

absl::StatusOr<TinyCausalLmWeights> ReadTinyCausalLmWeights(
    const TinyCausalLmConfig& config, const std::string& path) {
  FOLIO_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::Open(path));
  TinyCausalLmWeights weights;
  std::set<std::string> expected;
  absl::Status status;
  ForEachTensor(config, weights,
                [&](const std::string& name, const std::vector<int64_t>& shape,
                    std::vector<float>&) {
                  expected.insert(name);
                  status.Update(CheckTensor(*file, path, name, shape));
                });
  FOLIO_RETURN_IF_ERROR(status);
  FOLIO_RETURN_IF_ERROR(CheckNothingElse(*file, path, expected));
  ForEachTensor(config, weights,
                [&](const std::string& name, const std::vector<int64_t>&,
                    std::vector<float>& values) {
                  values = ToFloat(file->tensors().find(name)->second);
                });
  return weights;
}

}  // namespace folio
