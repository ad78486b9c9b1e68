// bf16, the upper half of an f32, one number at a time.

#ifndef RUNTIME_KERNELS_BF16_H_
#define RUNTIME_KERNELS_BF16_H_

#include <bit>
#include <cstdint>

namespace folio {

// Exact.
constexpr float FromBf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

// The nearest bf16, of two equally near the even one. NaN stays NaN.
constexpr uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace folio

#endif  // RUNTIME_KERNELS_BF16_H_
