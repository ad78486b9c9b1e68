// The 16-bit floating-point formats as f32.

#ifndef RUNTIME_WEIGHTS_HALF_H_
#define RUNTIME_WEIGHTS_HALF_H_

#include <array>
#include <bit>
#include <cstdint>

namespace folio {

// BF16 is the upper half of a float.
inline float Bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

// IEEE 754 binary16: sign, 5 bits of exponent (bias 15), 10 of mantissa. Every
// value is exact, NaNs keep their payload. Without branches, so that a compiler
// can convert several at once.
inline float F16ToFloat(uint16_t bits) {
  constexpr uint32_t kRebias = uint32_t{127 - 15} << 23;
  constexpr uint32_t kMaxExponent = uint32_t{0x1F} << 23;
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t magnitude = uint32_t{bits & 0x7FFFu} << 13;
  const uint32_t exponent = magnitude & kMaxExponent;
  // Infinities and NaNs go from the top of one format to that of the other.
  const uint32_t normal =
      magnitude + kRebias + (exponent == kMaxExponent ? kRebias : 0);
  // A subnormal m is m * 2^-24: as the mantissa of a float with the exponent
  // -14 it is 2^-14 too large.
  const float shifted =
      std::bit_cast<float>(magnitude + kRebias + (uint32_t{1} << 23));
  const uint32_t subnormal = std::bit_cast<uint32_t>(shifted - 0x1p-14f);
  return std::bit_cast<float>(sign | (exponent == 0 ? subnormal : normal));
}

// A binary16 number among other bytes: little-endian, unaligned.
using F16Bytes = std::array<uint8_t, 2>;

inline float FloatOf(F16Bytes bytes) {
  return F16ToFloat(static_cast<uint16_t>(bytes[0] | bytes[1] << 8));
}

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_HALF_H_
