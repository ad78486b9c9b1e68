#include "runtime/model/model_config.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/config_reader.h"
#include "runtime/weights/to_float.h"

namespace folio {
namespace {

using nlohmann::json;

constexpr char kConfigFile[] = "config.json";
constexpr char kGenerationConfigFile[] = "generation_config.json";

absl::Status CheckConfig(const DecoderConfig& config, const std::string& path) {
  const absl::Status valid = ValidateConfig(config);
  if (valid.ok()) return valid;
  return absl::InvalidArgumentError(
      absl::StrCat("'", path, "': ", std::string(valid.message())));
}

absl::StatusOr<HfConfig> ReadHfConfig(const ModelFiles& files,
                                      const char* file) {
  FOLIO_ASSIGN_OR_RETURN(json config, files.ReadJson(file));
  if (!config.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", files.PathOf(file), "': expected a JSON object"));
  }
  return HfConfig(std::move(config), files.PathOf(file));
}

absl::StatusOr<const Family*> FamilyOf(const ModelFiles& files) {
  FOLIO_ASSIGN_OR_RETURN(const json config, files.ReadJson(kConfigFile));
  const auto found =
      config.is_object() ? config.find("architectures") : config.end();
  if (found == config.end() || !found->is_array() || found->size() != 1 ||
      !found->front().is_string()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", files.PathOf(kConfigFile),
        "': expected an object with a key \"architectures\", a list of one "
        "name; supported names are ",
        absl::StrJoin(Families(), ", ",
                      [](std::string* out, const Family* family) {
                        out->append(family->architecture);
                      })));
  }
  return FindHfFamily(found->front().get<std::string>(),
                      absl::StrCat("'", files.PathOf(kConfigFile), "'"));
}

// BOS and EOS; generation_config.json's EOS tokens, where there are any, are
// the ones that end a chat.
absl::Status ReadTokens(const ModelFiles& files, const HfConfig& hf,
                        DecoderConfig& config) {
  FOLIO_RETURN_IF_ERROR(hf.ReadOptional("bos_token_id", config.bos_token));
  FOLIO_RETURN_IF_ERROR(hf.ReadOptional("eos_token_id", config.eos_tokens));
  if (!files.Has(kGenerationConfigFile)) return absl::OkStatus();
  FOLIO_ASSIGN_OR_RETURN(const HfConfig generation,
                         ReadHfConfig(files, kGenerationConfigFile));
  return generation.ReadOptional("eos_token_id", config.eos_tokens);
}

// What a GGUF file says by the tensors that it has, and not by keys.
absl::Status ReadGgufTensors(const GgufFile& file, DecoderConfig& config) {
  const auto& tensors = file.tensors().tensors;
  const auto& unreadable = file.tensors().unreadable;
  // Whatever their type: a tensor that can't be read is not one that is absent.
  const auto has = [&](const char* name) {
    return tensors.contains(name) || unreadable.contains(name);
  };
  const auto embedding = tensors.find("token_embd.weight");
  if (embedding != tensors.end() && embedding->second.shape.size() == 2) {
    const int64_t rows = embedding->second.shape[0];
    config.vocab_size = rows < (1 << 30) ? static_cast<int32_t>(rows) : 0;
  }
  config.tied_head = !has("output.weight");
  config.qkv_bias = config.qkv_bias || has("blk.0.attn_q.bias");
  config.out_bias = config.out_bias || has("blk.0.attn_output.bias");
  config.ffn_bias = config.ffn_bias || has("blk.0.ffn_up.bias");
  if (const auto factors = unreadable.find("rope_freqs.weight");
      factors != unreadable.end()) {
    return Unsupported(
        absl::StrCat("'", file.path(), "': type of tensor rope_freqs.weight,"),
        factors->second, "F32");
  }
  if (const auto factors = tensors.find("rope_freqs.weight");
      factors != tensors.end()) {
    if (factors->second.shape != std::vector<int64_t>{config.head_dim / 2}) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", file.path(), "': tensor rope_freqs.weight has shape [",
          absl::StrJoin(factors->second.shape, ", "), "]; expected [",
          config.head_dim / 2, "], half a head"));
    }
    const std::vector<float> values = ToFloat(factors->second);
    config.rope_factors.assign(values.begin(), values.end());
  }
  return absl::OkStatus();
}

absl::Status ReadGgufTokens(const GgufFile& file, DecoderConfig& config) {
  const GgufConfig tokenizer(&file, "tokenizer.ggml");
  int32_t token = -1;
  FOLIO_RETURN_IF_ERROR(tokenizer.ReadOptional("bos_token_id", token));
  if (token >= 0) config.bos_token = token;
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    token = -1;
    FOLIO_RETURN_IF_ERROR(tokenizer.ReadOptional(key, token));
    if (token >= 0) config.eos_tokens.push_back(token);
  }
  return absl::OkStatus();
}

// Parts of a model that was cut into several files have the others' tensors
// missing.
absl::Status RefuseParts(const GgufFile& file) {
  int32_t parts = 1;
  const GgufConfig split(&file, "split");
  FOLIO_RETURN_IF_ERROR(split.ReadOptional("count", parts));
  if (parts <= 1) return absl::OkStatus();
  return Unsupported(split.Where("count"), absl::StrCat(parts),
                     "one file; join the parts (llama-gguf-split --merge)");
}

}  // namespace

absl::StatusOr<FamilyConfig> ReadHfModelConfig(const ModelFiles& files) {
  FOLIO_ASSIGN_OR_RETURN(const Family* family, FamilyOf(files));
  FOLIO_ASSIGN_OR_RETURN(const HfConfig hf, ReadHfConfig(files, kConfigFile));
  FamilyConfig result{family, family->defaults()};
  result.config.architecture = std::string(family->architecture);
  FOLIO_RETURN_IF_ERROR(family->read_hf(hf, result.config));
  FOLIO_RETURN_IF_ERROR(ReadTokens(files, hf, result.config));
  CompleteConfig(result.config);
  FOLIO_RETURN_IF_ERROR(CheckConfig(result.config, hf.path()));
  return result;
}

absl::StatusOr<FamilyConfig> ReadGgufModelConfig(const GgufFile& file) {
  const std::string where = absl::StrCat("'", file.path(), "'");
  std::string architecture;
  FOLIO_RETURN_IF_ERROR(
      GgufConfig(&file, "general").Read("architecture", architecture));
  FOLIO_ASSIGN_OR_RETURN(const Family* family,
                         FindGgufFamily(architecture, where));
  FOLIO_RETURN_IF_ERROR(RefuseParts(file));
  if (file.tensors().tensors.empty() && file.tensors().unreadable.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where,
                     " has a vocabulary and no weights: it can tokenize (folio "
                     "tokenize), and not generate"));
  }
  FamilyConfig result{family, family->defaults()};
  DecoderConfig& config = result.config;
  config.architecture = std::string(family->architecture);
  FOLIO_RETURN_IF_ERROR(
      family->read_gguf(GgufConfig(&file, architecture), config));
  CompleteConfig(config);
  FOLIO_RETURN_IF_ERROR(ReadGgufTensors(file, config));
  FOLIO_RETURN_IF_ERROR(ReadGgufTokens(file, config));
  FOLIO_RETURN_IF_ERROR(CheckConfig(config, file.path()));
  return result;
}

}  // namespace folio
