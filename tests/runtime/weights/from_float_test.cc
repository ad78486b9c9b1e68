#include "runtime/weights/from_float.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/weights/half.h"
#include "runtime/weights/to_float.h"
#include "tests/support/random_floats.h"

namespace folio {
namespace {

std::string Encode(DType dtype, const std::vector<float>& values) {
  const DTypeInfo& info = InfoOf(dtype);
  std::string bytes(values.size() / info.block_elements * info.block_bytes, 0);
  FromFloat(dtype, values, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::vector<float> RoundTrip(DType dtype, const std::vector<float>& values) {
  const std::string bytes = Encode(dtype, values);
  TensorView tensor;
  tensor.dtype = dtype;
  tensor.shape = {static_cast<int64_t>(values.size())};
  tensor.bytes = std::as_bytes(std::span(bytes));
  return ToFloat(tensor);
}

// Every binary16 and BF16 number but NaNs is itself; the middle between two
// neighbours goes to the even one, what is on either side to the nearer.
TEST(HalfTest, RoundsToTheNearestAndEven) {
  const auto check = [](auto to_float, auto from_float, uint16_t infinity) {
    for (uint32_t bits = 0; bits <= infinity; ++bits) {
      for (const uint32_t sign : {0u, 0x8000u}) {
        const auto half = static_cast<uint16_t>(bits | sign);
        ASSERT_EQ(from_float(to_float(half)), half);
      }
      if (bits + 1 >= infinity) continue;
      const auto next = static_cast<uint16_t>(bits + 1);
      const double middle =
          (double{to_float(static_cast<uint16_t>(bits))} + to_float(next)) / 2;
      const auto tie = static_cast<float>(middle);
      if (tie != middle) continue;  // Between two of the smallest floats.
      ASSERT_EQ(from_float(tie), bits % 2 == 0 ? bits : next) << bits;
      ASSERT_EQ(from_float(std::nextafter(tie, 0.0f)), bits) << bits;
      ASSERT_EQ(from_float(std::nextafter(tie, INFINITY)), next) << bits;
    }
  };
  check(F16ToFloat, FloatToF16, 0x7C00);
  check(Bf16ToFloat, FloatToBf16, 0x7F80);
  EXPECT_EQ(FloatToF16(65519.0f), 0x7BFF);
  EXPECT_EQ(FloatToF16(65520.0f), 0x7C00);
  EXPECT_EQ(FloatToF16(-1e30f), 0xFC00);
}

TEST(FromFloatTest, KeepsFloats) {
  const std::vector<float> values = {1.5f, -3e-39f, 1e38f, 0.1f};
  EXPECT_EQ(RoundTrip(DType::kF32, values), values);
}

// By hand: the scale is 2 (127 steps to 254), so 3 is 1.5 steps, away from
// zero.
TEST(FromFloatTest, Q8_0ByHand) {
  std::vector<float> values(32, 0.0f);
  values[0] = -254;
  values[1] = 3;
  values[2] = -3;
  values[31] = 100;
  const std::string bytes = Encode(DType::kQ8_0, values);
  ASSERT_EQ(bytes.size(), 34u);
  EXPECT_EQ(bytes.substr(0, 2), std::string("\x00\x40", 2));  // 2 in binary16.
  EXPECT_EQ(static_cast<int8_t>(bytes[2]), -127);
  EXPECT_EQ(static_cast<int8_t>(bytes[3]), 2);
  EXPECT_EQ(static_cast<int8_t>(bytes[4]), -2);
  EXPECT_EQ(static_cast<int8_t>(bytes[5]), 0);
  EXPECT_EQ(static_cast<int8_t>(bytes[33]), 50);
}

// By hand: the extreme is 16, so the scale is -2, and 16 is step -8, or 0 with
// the offset of 8. -16 would be step 16, of which there are 15.
TEST(FromFloatTest, Q4_0ByHand) {
  std::vector<float> values(32, 0.0f);
  values[0] = 16;
  values[1] = 2;
  values[16] = -15.9f;
  values[17] = 4;
  const std::string bytes = Encode(DType::kQ4_0, values);
  ASSERT_EQ(bytes.size(), 18u);
  EXPECT_EQ(bytes.substr(0, 2), std::string("\x00\xC0", 2));  // -2.
  EXPECT_EQ(static_cast<uint8_t>(bytes[2]), 0xF0);
  EXPECT_EQ(static_cast<uint8_t>(bytes[3]), 0x67);
  EXPECT_EQ(static_cast<uint8_t>(bytes[4]), 0x88);
}

TEST(FromFloatTest, ZerosStayZeros) {
  const std::vector<float> zeros(64, 0.0f);
  for (const DType dtype : {DType::kBF16, DType::kQ8_0, DType::kQ4_0}) {
    EXPECT_EQ(RoundTrip(dtype, zeros), zeros);
  }
}

// No value moves by more than half a step of its block; but with Q4_0 those
// that 4 bits cut off by up to one. The scale itself is rounded to binary16,
// which moves values by up to 2^-11 of the largest.
TEST(FromFloatTest, StaysWithinHalfAStep) {
  const std::vector<float> values = RandomFloats(7, 32 * 500, 1);
  for (const auto& [dtype, steps, most] :
       {std::tuple(DType::kQ8_0, 127.0f, 0.5f),
        std::tuple(DType::kQ4_0, 8.0f, 1.0f)}) {
    const std::vector<float> found = RoundTrip(dtype, values);
    for (size_t i = 0; i < values.size(); ++i) {
      float largest = 0;
      for (size_t j = i / 32 * 32; j < i / 32 * 32 + 32; ++j) {
        largest = std::max(largest, std::abs(values[j]));
      }
      const float step = largest / steps;
      ASSERT_LE(std::abs(found[i] - values[i]),
                most * step * 1.0001f + largest * 0x1p-11f)
          << i;
    }
  }
}

}  // namespace
}  // namespace folio
