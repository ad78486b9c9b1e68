#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/weights/half.h"
#include "runtime/weights/to_float.h"

namespace folio {
namespace {

using ::testing::ElementsAre;

// One block, seen as the format's definition sees it.
class Block {
 public:
  explicit Block(const uint8_t* bytes) : bytes_(bytes) {}

  // `count` bits of byte `byte`, from `bit` on.
  int Bits(int byte, int bit, int count) const {
    int value = 0;
    for (int i = 0; i < count; ++i) {
      value += (bytes_[byte] & 1 << (bit + i)) != 0 ? 1 << i : 0;
    }
    return value;
  }
  int Signed(int byte) const {
    return bytes_[byte] < 128 ? bytes_[byte] : bytes_[byte] - 256;
  }
  float Half(int byte) const {
    return F16ToFloat(
        static_cast<uint16_t>(bytes_[byte] + 256 * bytes_[byte + 1]));
  }

 private:
  const uint8_t* bytes_;
};

// What follows decodes element i of a block, one bit field at a time.

float Q8_0(const Block& b, int i) {
  return b.Half(0) * static_cast<float>(b.Signed(2 + i));
}

float Q4_0(const Block& b, int i) {
  const int q = i < 16 ? b.Bits(2 + i, 0, 4) : b.Bits(2 + i - 16, 4, 4);
  return b.Half(0) * static_cast<float>(q - 8);
}

float Q4_1(const Block& b, int i) {
  const int q = i < 16 ? b.Bits(4 + i, 0, 4) : b.Bits(4 + i - 16, 4, 4);
  return b.Half(0) * static_cast<float>(q) + b.Half(2);
}

float Q5_0(const Block& b, int i) {
  const int low = i < 16 ? b.Bits(6 + i, 0, 4) : b.Bits(6 + i - 16, 4, 4);
  const int q = low + 16 * b.Bits(2 + i / 8, i % 8, 1);
  return b.Half(0) * static_cast<float>(q - 16);
}

float Q5_1(const Block& b, int i) {
  const int low = i < 16 ? b.Bits(8 + i, 0, 4) : b.Bits(8 + i - 16, 4, 4);
  const int q = low + 16 * b.Bits(4 + i / 8, i % 8, 1);
  return b.Half(0) * static_cast<float>(q) + b.Half(2);
}

// scales[16], qs[64], d, dmin.
float Q2_K(const Block& b, int i) {
  const int q = b.Bits(16 + i / 128 * 32 + i % 32, i % 128 / 32 * 2, 2);
  const float scale = b.Half(80) * static_cast<float>(b.Bits(i / 16, 0, 4));
  const float minimum = b.Half(82) * static_cast<float>(b.Bits(i / 16, 4, 4));
  return scale * static_cast<float>(q) - minimum;
}

// hmask[32], qs[64], scales[12], d. A clear bit in hmask means minus four.
float Q3_K(const Block& b, int i) {
  const int q = b.Bits(32 + i / 128 * 32 + i % 32, i % 128 / 32 * 2, 2) -
                (b.Bits(i % 32, i / 32, 1) == 1 ? 0 : 4);
  const int group = i / 16;
  const int low =
      group < 8 ? b.Bits(96 + group, 0, 4) : b.Bits(96 + group - 8, 4, 4);
  const int high = b.Bits(96 + 8 + group % 4, group / 4 * 2, 2);
  const float scale = b.Half(108) * static_cast<float>(low + 16 * high - 32);
  return scale * static_cast<float>(q);
}

struct SmallScale {
  int scale;
  int minimum;
};
// Q4_K's and Q5_K's 12 bytes from byte 4 on.
SmallScale SmallScaleOf(const Block& b, int group) {
  if (group < 4) return {b.Bits(4 + group, 0, 6), b.Bits(8 + group, 0, 6)};
  return {b.Bits(4 + 4 + group, 0, 4) + 16 * b.Bits(4 + group - 4, 6, 2),
          b.Bits(4 + 4 + group, 4, 4) + 16 * b.Bits(4 + group, 6, 2)};
}

// d, dmin, scales[12], qs[128].
float Q4_K(const Block& b, int i) {
  const int q = b.Bits(16 + i / 64 * 32 + i % 32, i % 64 < 32 ? 0 : 4, 4);
  const SmallScale s = SmallScaleOf(b, i / 32);
  const float scale = b.Half(0) * static_cast<float>(s.scale);
  const float minimum = b.Half(2) * static_cast<float>(s.minimum);
  return scale * static_cast<float>(q) - minimum;
}

// d, dmin, scales[12], qh[32], qs[128].
float Q5_K(const Block& b, int i) {
  const int q = b.Bits(48 + i / 64 * 32 + i % 32, i % 64 < 32 ? 0 : 4, 4) +
                16 * b.Bits(16 + i % 32, i / 32, 1);
  const SmallScale s = SmallScaleOf(b, i / 32);
  const float scale = b.Half(0) * static_cast<float>(s.scale);
  const float minimum = b.Half(2) * static_cast<float>(s.minimum);
  return scale * static_cast<float>(q) - minimum;
}

// ql[128], qh[64], scales[16], d.
float Q6_K(const Block& b, int i) {
  const int low = b.Bits(i / 128 * 64 + i % 64, i % 128 < 64 ? 0 : 4, 4);
  const int high = b.Bits(128 + i / 128 * 32 + i % 32, i % 128 / 32 * 2, 2);
  const float scale = b.Half(208) * static_cast<float>(b.Signed(192 + i / 16));
  return scale * static_cast<float>(low + 16 * high - 32);
}

struct Format {
  DType dtype;
  float (*element)(const Block&, int);
  std::vector<int> halves;  // Where a block has f16 numbers.
};

const std::vector<Format>& Formats() {
  static const auto* const formats = new std::vector<Format>{
      {DType::kQ8_0, Q8_0, {0}},    {DType::kQ4_0, Q4_0, {0}},
      {DType::kQ4_1, Q4_1, {0, 2}}, {DType::kQ5_0, Q5_0, {0}},
      {DType::kQ5_1, Q5_1, {0, 2}}, {DType::kQ2_K, Q2_K, {80, 82}},
      {DType::kQ3_K, Q3_K, {108}},  {DType::kQ4_K, Q4_K, {0, 2}},
      {DType::kQ5_K, Q5_K, {0, 2}}, {DType::kQ6_K, Q6_K, {208}},
  };
  return *formats;
}

// Random bytes, with finite numbers where the format has f16.
std::vector<uint8_t> RandomBlocks(const Format& format, int count,
                                  uint64_t seed) {
  const int block_bytes = InfoOf(format.dtype).block_bytes;
  std::vector<uint8_t> bytes(static_cast<size_t>(count) * block_bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(PhiloxAt(seed, 0, i)[0]);
  }
  for (int block = 0; block < count; ++block) {
    for (const int half : format.halves) {
      // Clears the top bit of the exponent: less than 2 in size.
      bytes[static_cast<size_t>(block) * block_bytes + half + 1] &= 0xBF;
    }
  }
  return bytes;
}

TensorView View(const Format& format, std::span<const uint8_t> bytes) {
  const DTypeInfo& info = InfoOf(format.dtype);
  const auto blocks = static_cast<int64_t>(bytes.size()) / info.block_bytes;
  return {format.dtype, {blocks, info.block_elements}, std::as_bytes(bytes)};
}

TEST(Dequantise, EqualsTheDefinitionOfEachFormat) {
  constexpr int kBlocks = 50;
  for (const Format& format : Formats()) {
    const DTypeInfo& info = InfoOf(format.dtype);
    SCOPED_TRACE(std::string(info.name));
    const std::vector<uint8_t> bytes = RandomBlocks(format, kBlocks, 17);
    const std::vector<float> floats = ToFloat(View(format, bytes));
    ASSERT_EQ(floats.size(), kBlocks * info.block_elements + 0u);
    for (size_t i = 0; i < floats.size(); ++i) {
      const Block block(bytes.data() +
                        i / info.block_elements * info.block_bytes);
      const int element = static_cast<int>(i % info.block_elements);
      ASSERT_EQ(floats[i], format.element(block, element)) << i;
    }
  }
}

// Every bit of a block matters to some element: the definitions above and the
// decoder could leave out the same field.
TEST(Dequantise, UsesEveryBitOfABlock) {
  constexpr int kBlocks = 10;  // A group's scale can be zero in one of them.
  for (const Format& format : Formats()) {
    const DTypeInfo& info = InfoOf(format.dtype);
    SCOPED_TRACE(std::string(info.name));
    const std::vector<uint8_t> bytes = RandomBlocks(format, kBlocks, 23);
    const std::vector<float> before = ToFloat(View(format, bytes));
    for (int bit = 0; bit < 8 * info.block_bytes; ++bit) {
      std::vector<uint8_t> flipped = bytes;
      for (int block = 0; block < kBlocks; ++block) {
        flipped[block * info.block_bytes + bit / 8] ^= 1 << bit % 8;
      }
      EXPECT_TRUE(ToFloat(View(format, flipped)) != before) << bit;
    }
  }
}

TEST(Dequantise, ConvertsRangesOfWholeBlocks) {
  constexpr int kBlocks = 7;
  for (const Format& format : Formats()) {
    const int elements = InfoOf(format.dtype).block_elements;
    SCOPED_TRACE(std::string(InfoOf(format.dtype).name));
    const std::vector<uint8_t> bytes = RandomBlocks(format, kBlocks, 29);
    const TensorView tensor = View(format, bytes);
    const std::vector<float> all = ToFloat(tensor);
    for (int first = 0; first < kBlocks; ++first) {
      for (int last = first; last <= kBlocks; ++last) {
        const size_t begin = static_cast<size_t>(first) * elements;
        std::vector<float> part(static_cast<size_t>(last - first) * elements);
        ToFloat(tensor, static_cast<int64_t>(begin), part);
        EXPECT_THAT(part, ::testing::ElementsAreArray(
                              std::span(all).subspan(begin, part.size())));
      }
    }
  }
}

// Worked by hand: 1.0 is 0x3C00, 0.5 is 0x3800, 2.0 is 0x4000 as f16.
TEST(Dequantise, BlocksWorkedByHand) {
  std::vector<uint8_t> q4_0(18, 0x88);  // All zero, but for three elements.
  q4_0[0] = 0x00;
  q4_0[1] = 0x38;
  q4_0[2] = 0xF0;   // Element 0: 0 - 8, element 16: 15 - 8; halved.
  q4_0[17] = 0x8A;  // Element 15: 10 - 8.
  const std::vector<float> four = ToFloat(View(Formats()[1], q4_0));
  EXPECT_EQ(four[0], -4.0f);
  EXPECT_EQ(four[16], 3.5f);
  EXPECT_EQ(four[15], 1.0f);
  EXPECT_EQ(four[31], 0.0f);

  std::vector<uint8_t> q6_k(210, 0);
  q6_k[208] = 0x00;
  q6_k[209] = 0x40;  // 2.0
  for (int i = 0; i < 16; ++i) q6_k[192 + i] = static_cast<uint8_t>(i - 8);
  q6_k[64 + 5] = 0x70;   // Element 128 + 64 + 5: lower bits 7,
  q6_k[160 + 5] = 0x30;  // and upper bits 3: 3 * 16 + 7 - 32 = 23.
  const std::vector<float> six = ToFloat(View(Formats()[9], q6_k));
  EXPECT_EQ(six[0], 2.0f * -8 * -32);
  EXPECT_EQ(six[192 + 5], 2.0f * (12 - 8) * 23);
  EXPECT_EQ(six[128 + 5], 2.0f * (8 - 8) * -32);
  EXPECT_EQ(six[255], 2.0f * (15 - 8) * -32);

  std::vector<uint8_t> q4_k(144, 0);
  q4_k[1] = 0x3C;                 // Scale 1.0,
  q4_k[3] = 0x38;                 // minimum 0.5.
  q4_k[4 + 1] = 0x80 | 3;         // Group 1: scale 3. Group 5: upper bits 2,
  q4_k[4 + 5] = 0x40 | 7;         // Group 1: minimum 7. Group 5: upper bits 1,
  q4_k[4 + 9] = 0xC9;             // lower bits 9 and 12: 41 and 28.
  q4_k[16 + 31] = 0x50;           // Element 63, of group 1: 5.
  q4_k[16 + 2 * 32 + 30] = 0xB0;  // Element 190, of group 5: 11.
  const std::vector<float> four_k = ToFloat(View(Formats()[7], q4_k));
  EXPECT_EQ(four_k[63], 1.0f * 3 * 5 - 0.5f * 7);
  EXPECT_EQ(four_k[32], -0.5f * 7);
  EXPECT_EQ(four_k[190], 1.0f * 41 * 11 - 0.5f * 28);
  EXPECT_EQ(four_k[0], 0.0f);
}

}  // namespace
}  // namespace folio
