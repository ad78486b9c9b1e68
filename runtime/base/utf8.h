// What the bytes at the front of a string are, as UTF-8.

#ifndef RUNTIME_BASE_UTF8_H_
#define RUNTIME_BASE_UTF8_H_

#include <cstddef>
#include <string_view>

namespace folio {

// U+FFFD, which stands for bytes that are not a character.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

enum class Utf8Kind {
  kCharacter,   // One whole, well-formed character.
  kIncomplete,  // The whole string, which more bytes could make a character.
  kInvalid,     // A maximal subpart: bytes that no more bytes could save.
};

struct Utf8Front {
  Utf8Kind kind;
  size_t length;  // In bytes, 1 to 4.
};

// The first character of `bytes`, or the bytes that one U+FFFD replaces there
// ("substitution of maximal subparts", Unicode 15, section 3.9, which is also
// what the WHATWG's decoder does). Well-formed means table 3-7 of that section:
// no overlong forms, no surrogates, nothing above U+10FFFF.
// REQUIRES: !bytes.empty().
Utf8Front FrontOfUtf8(std::string_view bytes);

bool IsValidUtf8(std::string_view bytes);

}  // namespace folio

#endif  // RUNTIME_BASE_UTF8_H_
