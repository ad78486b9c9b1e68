#include "runtime/weights/to_float.h"

#include <glog/logging.h>

#include <bit>
#include <cstdint>
#include <cstring>

namespace folio {
namespace {

static_assert(std::endian::native == std::endian::little,
              "files of weights are little-endian, and so must the machine be");

// BF16 is the upper half of a float.
float Bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

// IEEE 754 binary16: sign, 5 bits of exponent (bias 15), 10 of mantissa.
float F16ToFloat(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = bits >> 10 & 0x1F;
  const uint32_t mantissa = bits & 0x3FF;
  if (exponent == 0) {  // Zero or subnormal: mantissa * 2^-24, exactly.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide_exponent = exponent == 0x1F ? 0xFF : exponent - 15 + 127;
  return std::bit_cast<float>(sign | wide_exponent << 23 | mantissa << 13);
}

// Reads each element as a T; the bytes need not be aligned.
template <typename T, typename Convert>
std::vector<float> ConvertAll(std::span<const std::byte> bytes,
                              Convert convert) {
  CHECK_EQ(bytes.size() % sizeof(T), 0u);
  std::vector<float> floats(bytes.size() / sizeof(T));
  for (size_t i = 0; i < floats.size(); ++i) {
    T element;
    std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
    floats[i] = convert(element);
  }
  return floats;
}

}  // namespace

std::vector<float> ToFloat(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kF32:
      return ConvertAll<float>(tensor.bytes, [](float x) { return x; });
    case DType::kF16:
      return ConvertAll<uint16_t>(tensor.bytes, F16ToFloat);
    case DType::kBF16:
      return ConvertAll<uint16_t>(tensor.bytes, Bf16ToFloat);
  }
  LOG(FATAL) << "not a DType: " << static_cast<int>(tensor.dtype);
}

}  // namespace folio
