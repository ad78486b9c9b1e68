// Patterns in tokenizer.json.

#ifndef RUNTIME_TOKENIZER_HF_PATTERN_H_
#define RUNTIME_TOKENIZER_HF_PATTERN_H_

#include "absl/status/statusor.h"
#include "runtime/tokenizer/json_place.h"
#include "runtime/tokenizer/pattern.h"

namespace folio {

// The pattern of a step: {"String": text} or {"Regex": expression} at its key
// "pattern".
absl::StatusOr<Pattern> ReadHfPattern(const JsonPlace& step);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_HF_PATTERN_H_
