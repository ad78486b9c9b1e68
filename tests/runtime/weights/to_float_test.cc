#include "runtime/weights/to_float.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace folio {
namespace {

using ::testing::ElementsAre;

// The value of a binary floating-point pattern, from its definition.
double ValueOf(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int max_exponent = (1 << exponent_bits) - 1;
  const int bias = max_exponent / 2;
  const int exponent = bits >> mantissa_bits & max_exponent;
  const double mantissa = bits & ((1u << mantissa_bits) - 1);
  const double sign = bits >> (exponent_bits + mantissa_bits) != 0 ? -1 : 1;
  if (exponent == max_exponent) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) {
    return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  }
  return sign * std::ldexp(mantissa + (1 << mantissa_bits),
                           exponent - bias - mantissa_bits);
}

void ExpectExact(DType dtype, int exponent_bits, int mantissa_bits) {
  std::vector<uint16_t> patterns(1 << 16);
  for (size_t i = 0; i < patterns.size(); ++i) {
    patterns[i] = static_cast<uint16_t>(i);
  }
  const std::vector<float> floats =
      ToFloat({dtype, {1 << 16}, std::as_bytes(std::span(patterns))});
  ASSERT_EQ(floats.size(), patterns.size());
  for (uint32_t bits = 0; bits < patterns.size(); ++bits) {
    const double expected = ValueOf(bits, exponent_bits, mantissa_bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(floats[bits])) << bits;
      const uint32_t payload = bits & ((1u << mantissa_bits) - 1);
      ASSERT_EQ(std::bit_cast<uint32_t>(floats[bits]) & 0x7FFFFF,
                payload << (23 - mantissa_bits));
    } else {
      ASSERT_EQ(floats[bits], expected) << bits;
      ASSERT_EQ(std::signbit(floats[bits]), std::signbit(expected)) << bits;
    }
  }
}

TEST(ToFloat, EveryF16IsExact) { ExpectExact(DType::kF16, 5, 10); }
TEST(ToFloat, EveryBf16IsExact) { ExpectExact(DType::kBF16, 8, 7); }

TEST(ToFloat, ReadsUnalignedF32) {
  const float values[] = {1.5f, -0.0f, 3e38f};
  std::vector<std::byte> bytes(1 + sizeof(values));
  std::memcpy(bytes.data() + 1, values, sizeof(values));
  EXPECT_THAT(ToFloat({DType::kF32, {3}, std::span(bytes).subspan(1)}),
              ElementsAre(1.5f, -0.0f, 3e38f));
  EXPECT_THAT(ToFloat({DType::kF32, {0}, {}}), ::testing::IsEmpty());
}

TEST(ToFloat, ConvertsARange) {
  const float values[] = {1, 2, 3, 4, 5};
  const TensorView tensor = {
      DType::kF32, {5}, std::as_bytes(std::span(values))};
  std::vector<float> part(3);
  ToFloat(tensor, 1, part);
  EXPECT_THAT(part, ElementsAre(2, 3, 4));
  ToFloat(tensor, 5, {});  // Nothing, at the end.
}

TEST(ToFloatDeathTest, RefusesWhatIsNotInsideOrNotWholeBlocks) {
  const std::vector<std::byte> bytes(3 * 18);
  const TensorView tensor = {DType::kQ4_0, {3, 32}, bytes};
  std::vector<float> out(64);
  EXPECT_DEATH(ToFloat(tensor, 64, out), "not inside the tensor");
  EXPECT_DEATH(ToFloat(tensor, -32, out), "not inside the tensor");
  EXPECT_DEATH(ToFloat(tensor, 16, out), "not whole blocks of 32");
  EXPECT_DEATH(ToFloat(tensor, 0, std::span(out).first(40)),
               "not whole blocks of 32");
}

}  // namespace
}  // namespace folio
