#include "runtime/base/utf8.h"

#include <glog/logging.h>

#include <cstdint>

namespace folio {
namespace {

// One row of Unicode's table 3-7: how many bytes a lead byte announces, and
// which second byte may follow it. All later bytes are in [0x80, 0xBF].
struct LeadByte {
  size_t length;  // 0 for a byte that can't start a character.
  uint8_t second_min;
  uint8_t second_max;
};

constexpr LeadByte Lead(uint8_t byte) {
  if (byte <= 0x7F) return {1, 0, 0};
  if (byte <= 0xC1) return {0, 0, 0};  // Continuations and overlongs.
  if (byte <= 0xDF) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};  // Below, overlong.
  if (byte == 0xED) return {3, 0x80, 0x9F};  // Above, surrogates.
  if (byte <= 0xEF) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};  // Below, overlong.
  if (byte <= 0xF3) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};  // Above, beyond U+10FFFF.
  return {0, 0, 0};
}

}  // namespace

Utf8Front FrontOfUtf8(std::string_view bytes) {
  CHECK(!bytes.empty());
  const LeadByte lead = Lead(static_cast<uint8_t>(bytes[0]));
  if (lead.length == 0) return {Utf8Kind::kInvalid, 1};
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {Utf8Kind::kIncomplete, i};
    const uint8_t byte = static_cast<uint8_t>(bytes[i]);
    const uint8_t min = i == 1 ? lead.second_min : 0x80;
    const uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {Utf8Kind::kInvalid, i};
  }
  return {Utf8Kind::kCharacter, lead.length};
}

bool IsValidUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Utf8Front front = FrontOfUtf8(bytes);
    if (front.kind != Utf8Kind::kCharacter) return false;
    bytes.remove_prefix(front.length);
  }
  return true;
}

}  // namespace folio
