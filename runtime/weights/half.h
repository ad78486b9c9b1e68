// The 16-bit floating-point formats as f32, and back.

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

// The nearest BF16, of two equally near the even one. REQUIRES: not NaN.
inline uint16_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// The nearest binary16, of two equally near the even one; infinity from 65520
// on. REQUIRES: not NaN.
inline uint16_t FloatToF16(float value) {
  constexpr uint32_t kRebias = uint32_t{127 - 15} << 23;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  uint32_t half;
  if (magnitude >= std::bit_cast<uint32_t>(65520.0f)) {
    half = 0x7C00;
  } else if (magnitude < std::bit_cast<uint32_t>(0x1p-14f)) {
    // A float from 1/2 on has steps of 2^-24, as a subnormal binary16 has.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<uint32_t>(aligned) - std::bit_cast<uint32_t>(0.5f);
  } else {
    half = (magnitude - kRebias + 0xFFF + (magnitude >> 13 & 1)) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

// A binary16 number among other bytes: little-endian, unaligned.
using F16Bytes = std::array<uint8_t, 2>;

inline float FloatOf(F16Bytes bytes) {
  return F16ToFloat(static_cast<uint16_t>(bytes[0] | bytes[1] << 8));
}

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_HALF_H_
