#include "runtime/tokenizer/byte_level_alphabet.h"

#include <array>
#include <cstdint>

#include "runtime/tokenizer/code_points.h"

namespace folio {
namespace {

constexpr int kNumCodePoints = 0x144;
constexpr int16_t kNoByte = -1;

constexpr bool StandsForItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         byte >= 0xAE;
}

constexpr std::array<int16_t, kNumCodePoints> ByteOfEachCodePoint() {
  std::array<int16_t, kNumCodePoints> bytes{};
  for (int16_t& byte : bytes) byte = kNoByte;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[StandsForItself(byte) ? byte : next++] = static_cast<int16_t>(byte);
  }
  return bytes;
}

constexpr std::array<int16_t, kNumCodePoints> kBytes = ByteOfEachCodePoint();

}  // namespace

std::optional<std::string> BytesOfByteLevelText(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    const CodePoint front = FrontCodePoint(text);
    if (front.value >= kNumCodePoints || kBytes[front.value] == kNoByte) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(kBytes[front.value]));
    text.remove_prefix(front.length);
  }
  return bytes;
}

}  // namespace folio
