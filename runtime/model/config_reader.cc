#include "runtime/model/config_reader.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/json_file.h"

namespace folio {
namespace {

using nlohmann::json;

constexpr std::string_view kWholeNumber = "a whole number below 2^31";

std::optional<int32_t> ToInt32(const json& value) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const bool fits =
      value.is_number_unsigned()
          ? value.get<uint64_t>() <= static_cast<uint64_t>(kMost)
          : value.is_number_integer() && value.get<int64_t>() >= -kMost;
  if (!fits) return std::nullopt;
  return value.get<int32_t>();
}

}  // namespace

bool HfConfig::Has(const std::string& key) const {
  const auto found = config_.find(key);
  return found != config_.end() && !found->is_null();
}

std::string HfConfig::Where(const std::string& key) const {
  return absl::StrCat("'", path_, "': ", inside_, key);
}

absl::StatusOr<json> HfConfig::Find(const std::string& key) const {
  if (Has(key)) return *config_.find(key);
  return absl::InvalidArgumentError(
      absl::StrCat(Where(key), " is missing; this kind of model needs it"));
}

absl::Status HfConfig::Unexpected(const std::string& key, const json& found,
                                  std::string_view expected) const {
  return absl::InvalidArgumentError(
      absl::StrCat(Where(key), " is ", ShownJson(found), "; expected ",
                   std::string(expected)));
}

absl::Status HfConfig::Read(const std::string& key, int32_t& value) const {
  FOLIO_ASSIGN_OR_RETURN(const json found, Find(key));
  const std::optional<int32_t> number = ToInt32(found);
  if (!number.has_value()) return Unexpected(key, found, kWholeNumber);
  value = *number;
  return absl::OkStatus();
}

absl::Status HfConfig::Read(const std::string& key, double& value) const {
  FOLIO_ASSIGN_OR_RETURN(const json found, Find(key));
  if (!found.is_number()) return Unexpected(key, found, "a number");
  value = found.get<double>();
  return absl::OkStatus();
}

absl::Status HfConfig::Read(const std::string& key, bool& value) const {
  FOLIO_ASSIGN_OR_RETURN(const json found, Find(key));
  if (!found.is_boolean()) return Unexpected(key, found, "true or false");
  value = found.get<bool>();
  return absl::OkStatus();
}

absl::Status HfConfig::Read(const std::string& key, std::string& value) const {
  FOLIO_ASSIGN_OR_RETURN(const json found, Find(key));
  if (!found.is_string()) return Unexpected(key, found, "a string");
  value = found.get<std::string>();
  return absl::OkStatus();
}

absl::Status HfConfig::Read(const std::string& key,
                            std::vector<std::string>& value) const {
  FOLIO_ASSIGN_OR_RETURN(const json found, Find(key));
  const bool is_list =
      found.is_array() && std::ranges::all_of(found, [](const json& element) {
        return element.is_string();
      });
  if (!is_list) return Unexpected(key, found, "a list of strings");
  value = found.get<std::vector<std::string>>();
  return absl::OkStatus();
}

absl::Status HfConfig::Read(const std::string& key,
                            std::vector<TokenId>& value) const {
  FOLIO_ASSIGN_OR_RETURN(const json found, Find(key));
  const json list = found.is_array() ? found : json::array({found});
  std::vector<TokenId> tokens;
  for (const json& element : list) {
    const std::optional<int32_t> number = ToInt32(element);
    if (!number.has_value()) return Unexpected(key, element, kWholeNumber);
    tokens.push_back(*number);
  }
  value = std::move(tokens);
  return absl::OkStatus();
}

absl::StatusOr<HfConfig> HfConfig::Inside(const std::string& key) const {
  FOLIO_ASSIGN_OR_RETURN(json found, Find(key));
  if (!found.is_object()) return Unexpected(key, found, "an object");
  HfConfig inside(std::move(found), path_);
  inside.inside_ = inside_ + key + ".";
  return inside;
}

std::string GgufConfig::Where(std::string_view key) const {
  return absl::StrCat("'", file_->path(), "': ", Full(key));
}

absl::Status GgufConfig::CheckHas(std::string_view key) const {
  if (Has(key)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Where(key), " is missing; this kind of model needs it"));
}

absl::Status GgufConfig::Read(std::string_view key, int32_t& value) const {
  FOLIO_RETURN_IF_ERROR(CheckHas(key));
  FOLIO_ASSIGN_OR_RETURN(const int64_t number, file_->Integer(Full(key)));
  if (number < std::numeric_limits<int32_t>::min() ||
      number > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Where(key), " is ", number, "; expected ", std::string(kWholeNumber)));
  }
  value = static_cast<int32_t>(number);
  return absl::OkStatus();
}

absl::Status GgufConfig::Read(std::string_view key, double& value) const {
  FOLIO_RETURN_IF_ERROR(CheckHas(key));
  FOLIO_ASSIGN_OR_RETURN(value, file_->Number(Full(key)));
  return absl::OkStatus();
}

absl::Status GgufConfig::Read(std::string_view key, std::string& value) const {
  FOLIO_RETURN_IF_ERROR(CheckHas(key));
  FOLIO_ASSIGN_OR_RETURN(const std::string_view text, file_->String(Full(key)));
  value = std::string(text);
  return absl::OkStatus();
}

}  // namespace folio
