#include "runtime/weights/shown.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/utf8.h"

namespace folio {
namespace {

bool IsPlain(std::string_view character) {
  if (character.size() > 1) {
    // The C1 control characters, U+0080 to U+009F.
    return character[0] != '\xC2' || static_cast<uint8_t>(character[1]) >= 0xA0;
  }
  return absl::ascii_isprint(character[0]);
}

}  // namespace

std::string Printable(std::string_view text, size_t max_bytes) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const Utf8Front front = FrontOfUtf8(text.substr(at));
    if (at + front.length > max_bytes) {
      shown += "...";
      break;
    }
    const std::string_view part = text.substr(at, front.length);
    if (front.kind == Utf8Kind::kCharacter && IsPlain(part)) {
      shown += part;
    } else {
      for (const char c : part) {
        absl::StrAppend(&shown, "\\x",
                        absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
      }
    }
    at += front.length;
  }
  return shown;
}

std::string Shown(std::string_view text) {
  return absl::StrCat("'", Printable(text), "'");
}

}  // namespace folio
