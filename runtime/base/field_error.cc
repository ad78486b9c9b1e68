#include "runtime/base/field_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace folio {
namespace {

constexpr char kPayload[] = "folio/field";

}  // namespace

absl::Status FieldError(std::string_view field, std::string_view problem) {
  absl::Status status = absl::InvalidArgumentError(
      absl::StrCat(std::string(field), std::string(problem)));
  status.SetPayload(kPayload, absl::Cord(std::string(field)));
  return status;
}

std::optional<std::string> FieldOf(const absl::Status& status) {
  const absl::optional<absl::Cord> field = status.GetPayload(kPayload);
  if (!field.has_value()) return std::nullopt;
  return std::string(*field);
}

}  // namespace folio
