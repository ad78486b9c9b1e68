// The "K" types: blocks of 256 elements, whose groups of 16 or 32 have
// quantised scales of their own.

#include <array>
#include <cstdint>

#include "runtime/weights/dequantise.h"
#include "runtime/weights/half.h"

namespace folio {
namespace {

constexpr int kElements = 256;

// Where Q2_K and Q3_K keep the lower two bits: of 128 elements at a time, the
// element 32 * i + j is in byte j, at bit 2 * i.
struct BlockQ2_K {
  uint8_t scales[16];  // For 16 elements: lower four bits scale, upper minimum.
  uint8_t values[64];
  F16Bytes scale;
  F16Bytes minimum;
};

struct BlockQ3_K {
  uint8_t high[32];  // Bit i of byte j: the third bit of element 32 * i + j.
  uint8_t values[64];
  uint8_t scales[12];  // See ScalesOf.
  F16Bytes scale;
};

// Of 64 elements at a time, the first 32 are in the lower four bits of 32
// bytes, the others in the upper four.
struct BlockQ4_K {
  F16Bytes scale;
  F16Bytes minimum;
  uint8_t scales[12];  // See GroupOf.
  uint8_t values[128];
};

struct BlockQ5_K {
  F16Bytes scale;
  F16Bytes minimum;
  uint8_t scales[12];
  uint8_t high[32];  // Bit i of byte j: the fifth bit of element 32 * i + j.
  uint8_t values[128];
};

// Of 128 elements at a time: the lower four bits of 0 to 63 are in the lower
// four of 64 bytes of `low`, those of 64 to 127 in the upper four; the upper
// two bits of element 32 * i + j are in byte j of 32 in `high`, at bit 2 * i.
struct BlockQ6_K {
  uint8_t low[128];
  uint8_t high[64];
  int8_t scales[16];  // For 16 elements.
  F16Bytes scale;
};

void DecodeQ2_K(const BlockQ2_K& block, float* out) {
  const float scale = FloatOf(block.scale);
  const float minimum = FloatOf(block.minimum);
  for (int group = 0; group < 16; ++group, out += 16) {
    const uint8_t* values = block.values + group / 8 * 32 + group % 2 * 16;
    const int shift = group % 8 / 2 * 2;
    const uint8_t packed = block.scales[group];
    const float group_scale = scale * static_cast<float>(packed & 0xF);
    const float group_minimum = minimum * static_cast<float>(packed >> 4);
    for (int i = 0; i < 16; ++i) {
      out[i] = group_scale * static_cast<float>(values[i] >> shift & 3) -
               group_minimum;
    }
  }
}

// Q3_K's 16 scales of six bits, less 32. The lower four bits of 0 to 7 are in
// the lower four of bytes 0 to 7, those of 8 to 15 in the upper four; the upper
// two of scale i are in byte 8 + i % 4, at bit i / 4 * 2.
std::array<int, 16> ScalesOf(const uint8_t (&packed)[12]) {
  std::array<int, 16> scales;
  for (int i = 0; i < 16; ++i) {
    const int low = packed[i % 8] >> i / 8 * 4 & 0xF;
    const int high = packed[8 + i % 4] >> i / 4 * 2 & 3;
    scales[i] = (low | high << 4) - 32;
  }
  return scales;
}

void DecodeQ3_K(const BlockQ3_K& block, float* out) {
  const float scale = FloatOf(block.scale);
  const std::array<int, 16> scales = ScalesOf(block.scales);
  for (int group = 0; group < 16; ++group, out += 16) {
    const uint8_t* values = block.values + group / 8 * 32 + group % 2 * 16;
    const uint8_t* high = block.high + group % 2 * 16;
    const int shift = group % 8 / 2 * 2;
    const float group_scale = scale * static_cast<float>(scales[group]);
    for (int i = 0; i < 16; ++i) {
      const int value = (values[i] >> shift & 3) | (high[i] >> group / 2 & 1)
                                                       << 2;
      out[i] = group_scale * static_cast<float>(value - 4);
    }
  }
}

// The scale and minimum of 32 elements in Q4_K and Q5_K, six bits each. Those
// of groups 0 to 3 are the lower six bits of bytes 0 to 3 and 4 to 7. Of groups
// 4 to 7 the lower four bits are in bytes 8 to 11 (scale lower, minimum upper),
// and the upper two those that the former leave free.
struct Group {
  float scale;
  float minimum;
};
Group GroupOf(const uint8_t (&packed)[12], int group, float scale,
              float minimum) {
  int small_scale = packed[group % 4] & 63;
  int small_minimum = packed[group % 4 + 4] & 63;
  if (group >= 4) {
    const uint8_t low = packed[group + 4];
    small_scale = (low & 0xF) | packed[group - 4] >> 6 << 4;
    small_minimum = low >> 4 | packed[group] >> 6 << 4;
  }
  return {scale * static_cast<float>(small_scale),
          minimum * static_cast<float>(small_minimum)};
}

void DecodeQ4_K(const BlockQ4_K& block, float* out) {
  const float scale = FloatOf(block.scale);
  const float minimum = FloatOf(block.minimum);
  for (int group = 0; group < 8; ++group, out += 32) {
    const Group g = GroupOf(block.scales, group, scale, minimum);
    const uint8_t* values = block.values + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      out[i] =
          g.scale * static_cast<float>(values[i] >> shift & 0xF) - g.minimum;
    }
  }
}

void DecodeQ5_K(const BlockQ5_K& block, float* out) {
  const float scale = FloatOf(block.scale);
  const float minimum = FloatOf(block.minimum);
  for (int group = 0; group < 8; ++group, out += 32) {
    const Group g = GroupOf(block.scales, group, scale, minimum);
    const uint8_t* values = block.values + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      const int value =
          (values[i] >> shift & 0xF) | (block.high[i] >> group & 1) << 4;
      out[i] = g.scale * static_cast<float>(value) - g.minimum;
    }
  }
}

void DecodeQ6_K(const BlockQ6_K& block, float* out) {
  const float scale = FloatOf(block.scale);
  for (int group = 0; group < 16; ++group, out += 16) {
    const int part = group % 8;  // Of 128 elements.
    const uint8_t* low = block.low + group / 8 * 64 + part % 4 * 16;
    const int low_shift = part / 4 * 4;
    const uint8_t* high = block.high + group / 8 * 32 + part % 2 * 16;
    const int high_shift = part / 2 * 2;
    const float group_scale = scale * static_cast<float>(block.scales[group]);
    for (int i = 0; i < 16; ++i) {
      const int value =
          (low[i] >> low_shift & 0xF) | (high[i] >> high_shift & 3) << 4;
      out[i] = group_scale * static_cast<float>(value - 32);
    }
  }
}

}  // namespace

void DequantiseQ2_K(const std::byte* blocks, std::span<float> out) {
  ForEachBlock<BlockQ2_K, kElements>(blocks, out, DecodeQ2_K);
}
void DequantiseQ3_K(const std::byte* blocks, std::span<float> out) {
  ForEachBlock<BlockQ3_K, kElements>(blocks, out, DecodeQ3_K);
}
void DequantiseQ4_K(const std::byte* blocks, std::span<float> out) {
  ForEachBlock<BlockQ4_K, kElements>(blocks, out, DecodeQ4_K);
}
void DequantiseQ5_K(const std::byte* blocks, std::span<float> out) {
  ForEachBlock<BlockQ5_K, kElements>(blocks, out, DecodeQ5_K);
}
void DequantiseQ6_K(const std::byte* blocks, std::span<float> out) {
  ForEachBlock<BlockQ6_K, kElements>(blocks, out, DecodeQ6_K);
}

}  // namespace folio
