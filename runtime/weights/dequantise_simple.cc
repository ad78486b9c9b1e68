// The types with one scale for a block of 32 elements: Q8_0, and Q4 and Q5
// with (_1) and without (_0) an offset.

#include <cstdint>

#include "runtime/weights/dequantise.h"
#include "runtime/weights/half.h"

namespace folio {
namespace {

constexpr int kElements = 32;
constexpr int kHalf = kElements / 2;

struct BlockQ8_0 {
  F16Bytes scale;
  int8_t values[kElements];
};

// In the lower four bits of `low` are the elements 0 to 15, in the upper four
// 16 to 31.
struct BlockQ4_0 {
  F16Bytes scale;
  uint8_t low[kHalf];
};
struct BlockQ4_1 {
  F16Bytes scale;
  F16Bytes minimum;
  uint8_t low[kHalf];
};

// Bit i of `high`, little-endian, is the fifth bit of element i.
struct BlockQ5_0 {
  F16Bytes scale;
  uint8_t high[4];
  uint8_t low[kHalf];
};
struct BlockQ5_1 {
  F16Bytes scale;
  F16Bytes minimum;
  uint8_t high[4];
  uint8_t low[kHalf];
};

// The fifth bits, each at its place in the value.
void SpreadHighBits(const uint8_t (&high)[4], uint8_t (&bits)[kElements]) {
  for (int i = 0; i < kElements; ++i) {
    bits[i] = static_cast<uint8_t>((high[i / 8] >> i % 8 & 1) << 4);
  }
}

void DecodeQ8_0(const BlockQ8_0& block, float* out) {
  const float scale = FloatOf(block.scale);
  for (int i = 0; i < kElements; ++i) {
    out[i] = scale * static_cast<float>(block.values[i]);
  }
}

void DecodeQ4_0(const BlockQ4_0& block, float* out) {
  const float scale = FloatOf(block.scale);
  for (int i = 0; i < kHalf; ++i) {
    out[i] = scale * static_cast<float>((block.low[i] & 0xF) - 8);
    out[i + kHalf] = scale * static_cast<float>((block.low[i] >> 4) - 8);
  }
}

void DecodeQ4_1(const BlockQ4_1& block, float* out) {
  const float scale = FloatOf(block.scale);
  const float minimum = FloatOf(block.minimum);
  for (int i = 0; i < kHalf; ++i) {
    out[i] = scale * static_cast<float>(block.low[i] & 0xF) + minimum;
    out[i + kHalf] = scale * static_cast<float>(block.low[i] >> 4) + minimum;
  }
}

void DecodeQ5_0(const BlockQ5_0& block, float* out) {
  const float scale = FloatOf(block.scale);
  uint8_t high[kElements];
  SpreadHighBits(block.high, high);
  for (int i = 0; i < kHalf; ++i) {
    const int first = (block.low[i] & 0xF) | high[i];
    const int second = block.low[i] >> 4 | high[i + kHalf];
    out[i] = scale * static_cast<float>(first - 16);
    out[i + kHalf] = scale * static_cast<float>(second - 16);
  }
}

void DecodeQ5_1(const BlockQ5_1& block, float* out) {
  const float scale = FloatOf(block.scale);
  const float minimum = FloatOf(block.minimum);
  uint8_t high[kElements];
  SpreadHighBits(block.high, high);
  for (int i = 0; i < kHalf; ++i) {
    const int first = (block.low[i] & 0xF) | high[i];
    const int second = block.low[i] >> 4 | high[i + kHalf];
    out[i] = scale * static_cast<float>(first) + minimum;
    out[i + kHalf] = scale * static_cast<float>(second) + minimum;
  }
}

}  // namespace

void DequantiseQ8_0(const std::byte* blocks, std::span<float> out) {
  ForEachBlock<BlockQ8_0, kElements>(blocks, out, DecodeQ8_0);
}
void DequantiseQ4_0(const std::byte* blocks, std::span<float> out) {
  ForEachBlock<BlockQ4_0, kElements>(blocks, out, DecodeQ4_0);
}
void DequantiseQ4_1(const std::byte* blocks, std::span<float> out) {
  ForEachBlock<BlockQ4_1, kElements>(blocks, out, DecodeQ4_1);
}
void DequantiseQ5_0(const std::byte* blocks, std::span<float> out) {
  ForEachBlock<BlockQ5_0, kElements>(blocks, out, DecodeQ5_0);
}
void DequantiseQ5_1(const std::byte* blocks, std::span<float> out) {
  ForEachBlock<BlockQ5_1, kElements>(blocks, out, DecodeQ5_1);
}

}  // namespace folio
