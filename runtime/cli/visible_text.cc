#include "runtime/cli/visible_text.h"

#include "absl/strings/str_format.h"
#include "runtime/base/utf8.h"

namespace folio {
namespace {

// `character` is one whole character of UTF-8.
bool IsControl(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  // U+0080 to U+009F, the controls of ISO 8859, are C2 80 to C2 9F.
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

std::string WithVisibleControls(std::string_view text, std::string_view keep) {
  std::string visible;
  while (!text.empty()) {
    const Utf8Front front = FrontOfUtf8(text);
    const std::string_view bytes = text.substr(0, front.length);
    text.remove_prefix(front.length);
    const bool is_shown =
        front.kind == Utf8Kind::kCharacter &&
        (!IsControl(bytes) || keep.find(bytes) != std::string_view::npos);
    if (is_shown) {
      visible += bytes;
      continue;
    }
    for (const char byte : bytes) {
      visible += absl::StrFormat("\\x%02x", static_cast<unsigned char>(byte));
    }
  }
  return visible;
}

}  // namespace folio
