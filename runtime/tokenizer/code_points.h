// Text as code points, and the classes of them that tokenizers ask for.

#ifndef RUNTIME_TOKENIZER_CODE_POINTS_H_
#define RUNTIME_TOKENIZER_CODE_POINTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace folio {

struct CodePoint {
  uint32_t value;
  size_t length;  // In bytes, 1 to 4.
};

// REQUIRES: `text` is valid UTF-8 and not empty.
CodePoint FrontCodePoint(std::string_view text);
CodePoint BackCodePoint(std::string_view text);

// REQUIRES: `code_point` is at most 0x10FFFF and not a surrogate.
void AppendUtf8(uint32_t code_point, std::string& text);

// INVALID_ARGUMENT, naming byte and offset, when `text` is not valid UTF-8.
absl::Status CheckUtf8(std::string_view text);

// Unicode's White_Space.
bool IsWhiteSpace(uint32_t code_point);

// What \w matches: letters, marks, decimal digits, letter-like numbers and
// connecting punctuation such as '_' (UTS #18, annex C).
bool IsWordCharacter(uint32_t code_point);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_CODE_POINTS_H_
