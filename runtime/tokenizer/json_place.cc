#include "runtime/tokenizer/json_place.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/shown.h"

namespace folio {
namespace {

using nlohmann::json;

std::string_view KindOf(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "a list";
    case json::value_t::string:
      return "a string";
    case json::value_t::boolean:
      return "true or false";
    default:
      return "a number";
  }
}

}  // namespace

absl::Status JsonPlace::Error(std::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat("'", path_, "': ", Printable(way_), way_.empty() ? "" : ": ",
                   // It repeats what the file has, which can be anything.
                   Printable(what, /*max_bytes=*/1000)));
}

absl::Status JsonPlace::Unexpected(std::string_view expected) const {
  return Error(absl::StrCat("found ", std::string(KindOf(*value_)),
                            "; expected ", std::string(expected)));
}

absl::StatusOr<std::string> JsonPlace::String() const {
  if (!value_->is_string()) return Unexpected("a string");
  return value_->get<std::string>();
}

absl::StatusOr<bool> JsonPlace::Bool() const {
  if (!value_->is_boolean()) return Unexpected("true or false");
  return value_->get<bool>();
}

absl::StatusOr<int64_t> JsonPlace::Integer() const {
  const bool is_too_great =
      value_->is_number_unsigned() &&
      value_->get<uint64_t>() > std::numeric_limits<int64_t>::max();
  if (!value_->is_number_integer() || is_too_great) {
    return Unexpected("a whole number");
  }
  return value_->get<int64_t>();
}

absl::Status JsonPlace::ExpectObject() const {
  return value_->is_object() ? absl::OkStatus() : Unexpected("an object");
}

absl::Status JsonPlace::ExpectList() const {
  return value_->is_array() ? absl::OkStatus() : Unexpected("a list");
}

absl::StatusOr<std::vector<JsonPlace>> JsonPlace::Elements() const {
  FOLIO_RETURN_IF_ERROR(ExpectList());
  std::vector<JsonPlace> elements;
  for (const json& element : *value_) {
    elements.push_back(At(element, absl::StrCat("[", elements.size(), "]")));
  }
  return elements;
}

absl::StatusOr<JsonPlace> JsonPlace::Get(std::string_view key) const {
  FOLIO_RETURN_IF_ERROR(ExpectObject());
  const auto found = value_->find(key);
  if (found == value_->end()) {
    return Error(absl::StrCat("\"", std::string(key), "\" is missing"));
  }
  return At(*found, key);
}

absl::StatusOr<std::optional<JsonPlace>> JsonPlace::Find(
    std::string_view key) const {
  FOLIO_RETURN_IF_ERROR(ExpectObject());
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return At(*found, key);
}

absl::StatusOr<std::string> JsonPlace::StringAt(std::string_view key) const {
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace member, Get(key));
  return member.String();
}

absl::StatusOr<bool> JsonPlace::BoolAt(std::string_view key,
                                       bool otherwise) const {
  FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> member, Find(key));
  if (!member.has_value()) return otherwise;
  return member->Bool();
}

JsonPlace JsonPlace::At(const json& value, std::string_view step) const {
  JsonPlace place(value, path_);
  const bool is_member = !step.starts_with('[');
  place.way_ = absl::StrCat(way_, is_member && !way_.empty() ? "." : "",
                            std::string(step));
  return place;
}

}  // namespace folio
