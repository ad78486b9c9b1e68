// Errors about one field of a request.

#ifndef RUNTIME_BASE_FIELD_ERROR_H_
#define RUNTIME_BASE_FIELD_ERROR_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace folio {

// INVALID_ARGUMENT, whose message is `field` and then `problem` (" is -1; it
// must be ..."), and which also carries the field by itself, for those who tell
// it to programs. `field` is as the proto has it: "sampling.top_p".
absl::Status FieldError(std::string_view field, std::string_view problem);

// The field that a FieldError is about; none of other errors.
std::optional<std::string> FieldOf(const absl::Status& status);

}  // namespace folio

#endif  // RUNTIME_BASE_FIELD_ERROR_H_
