#include "runtime/weights/from_float.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/weights/half.h"

namespace folio {
namespace {

constexpr size_t kElements = 32;  // Of a block of Q8_0 or Q4_0.
constexpr size_t kHalf = kElements / 2;

using Block = std::span<const float, kElements>;

// 1 / scale, where a block of zeros has a scale of 0.
float InverseOf(float scale) { return scale == 0 ? 0 : 1 / scale; }

void EncodeF32(std::span<const float> values, std::byte* out) {
  std::memcpy(out, values.data(), values.size_bytes());
}

void EncodeBf16(std::span<const float> values, std::byte* out) {
  for (const float value : values) {
    const uint16_t bits = FloatToBf16(value);
    std::memcpy(out, &bits, sizeof(bits));
    out += sizeof(bits);
  }
}

void EncodeQ8_0(Block values, std::byte* out) {
  float largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::abs(value));
  }
  const float scale = largest / 127;
  const float inverse = InverseOf(scale);
  const uint16_t scale_bits = FloatToF16(scale);
  std::memcpy(out, &scale_bits, sizeof(scale_bits));
  out += sizeof(scale_bits);
  for (const float value : values) {
    *out++ = static_cast<std::byte>(
        static_cast<int8_t>(std::round(value * inverse)));
  }
}

void EncodeQ4_0(Block values, std::byte* out) {
  const float extreme = *std::ranges::max_element(
      values, {}, [](float v) { return std::abs(v); });
  const float scale = extreme / -8;
  const float inverse = InverseOf(scale);
  const uint16_t scale_bits = FloatToF16(scale);
  std::memcpy(out, &scale_bits, sizeof(scale_bits));
  out += sizeof(scale_bits);
  const auto steps = [&](float value) {
    return std::min(15, static_cast<int>(value * inverse + 8.5f));
  };
  for (size_t i = 0; i < kHalf; ++i) {
    *out++ = static_cast<std::byte>(steps(values[i]) | steps(values[i + kHalf])
                                                           << 4);
  }
}

void EncodeBlocks(std::span<const float> values, int32_t block_bytes,
                  std::byte* out, void (*encode)(Block, std::byte*)) {
  for (size_t at = 0; at < values.size(); at += kElements) {
    encode(values.subspan(at).first<kElements>(), out);
    out += block_bytes;
  }
}

}  // namespace

bool CanWrite(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 ||
         dtype == DType::kQ8_0 || dtype == DType::kQ4_0;
}

void FromFloat(DType dtype, std::span<const float> values,
               std::span<std::byte> out) {
  const DTypeInfo& info = InfoOf(dtype);
  CHECK_EQ(values.size() % info.block_elements, 0u);
  CHECK_EQ(values.size() / info.block_elements * info.block_bytes, out.size());
  switch (dtype) {
    case DType::kF32:
      return EncodeF32(values, out.data());
    case DType::kBF16:
      return EncodeBf16(values, out.data());
    case DType::kQ8_0:
      return EncodeBlocks(values, info.block_bytes, out.data(), EncodeQ8_0);
    case DType::kQ4_0:
      return EncodeBlocks(values, info.block_bytes, out.data(), EncodeQ4_0);
    default:
      LOG(FATAL) << "FromFloat does not write " << info.name;
  }
}

}  // namespace folio
