#include "runtime/tokenizer/sentencepiece_text.h"

#include "absl/strings/str_replace.h"

namespace folio {
namespace {

std::optional<int> ValueOfHexDigit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return std::nullopt;
}

}  // namespace

std::optional<char> ByteOfToken(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') {
    return std::nullopt;
  }
  const std::optional<int> high = ValueOfHexDigit(text[3]);
  const std::optional<int> low = ValueOfHexDigit(text[4]);
  if (!high.has_value() || !low.has_value()) return std::nullopt;
  return static_cast<char>(*high << 4 | *low);
}

std::string WithSpacesForMarkers(std::string_view text) {
  return absl::StrReplaceAll(
      {text.data(), text.size()},
      {{{kSpaceMarker.data(), kSpaceMarker.size()}, " "}});
}

}  // namespace folio
