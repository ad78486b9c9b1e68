#include "runtime/tokenizer/code_points.h"

#include <utf8proc.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/utf8.h"

namespace folio {
namespace {

// How many bytes at the front of `text` are ASCII, in steps of eight.
size_t AsciiPrefix(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t length = 0;
  uint64_t word;
  for (; length + sizeof(word) <= text.size(); length += sizeof(word)) {
    std::memcpy(&word, text.data() + length, sizeof(word));
    if ((word & kHighBits) != 0) break;
  }
  return length;
}

}  // namespace

CodePoint FrontCodePoint(std::string_view text) {
  const auto byte = [text](size_t i) -> uint32_t {
    return static_cast<uint8_t>(text[i]);
  };
  const auto tail = [byte](size_t i) { return byte(i) & 0x3F; };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | tail(1), 2};
  if (lead < 0xF0) return {(lead & 0xF) << 12 | tail(1) << 6 | tail(2), 3};
  return {(lead & 7) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4};
}

CodePoint BackCodePoint(std::string_view text) {
  size_t begin = text.size() - 1;
  while ((static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
  return FrontCodePoint(text.substr(begin));
}

void AppendUtf8(uint32_t code_point, std::string& text) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t length =
      utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  text.append(reinterpret_cast<const char*>(bytes), length);
}

absl::Status CheckUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    i += AsciiPrefix(text.substr(i));
    if (i == text.size()) break;
    const Utf8Front front = FrontOfUtf8(text.substr(i));
    if (front.kind != Utf8Kind::kCharacter) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the text is not valid UTF-8: byte 0x",
          absl::Hex(static_cast<uint8_t>(text[i]), absl::kZeroPad2),
          " at offset ", i, " begins no character"));
    }
    i += front.length;
  }
  return absl::OkStatus();
}

bool IsWhiteSpace(uint32_t code_point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:
      return (code_point >= '\t' && code_point <= '\r') || code_point == 0x85;
  }
}

bool IsWordCharacter(uint32_t code_point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

}  // namespace folio
