#include "runtime/kernels/bf16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/kernels/split_qkv.h"
#include "tests/runtime/kernels/each_target.h"
#include "tests/runtime/kernels/kv_places.h"
#include "tests/runtime/kernels/matrices.h"
#include "tests/support/sanitized.h"

namespace folio {
namespace {

// Each upper half of an f32 with lower halves around the ties, and others.
std::vector<float> Samples() {
  std::vector<float> samples;
  for (uint32_t upper = 0; upper < 0x10000; upper += kSanitized ? 7 : 1) {
    const uint32_t random = PhiloxAt(/*seed=*/1, 0, upper)[0] & 0xFFFF;
    for (uint32_t lower :
         {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu, random}) {
      samples.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  return samples;
}

// What 8 bits of significand can hold, by arithmetic: a multiple of the place
// value of the last bit. All of it is exact in double precision, and
// nearbyint's ties go to even.
double Nearest(float value) {
  if (!std::isfinite(value) || value == 0) return value;
  const int exponent = std::max(std::ilogb(value), -126);
  const double quantum = std::ldexp(1.0, exponent - 7);
  const double rounded = std::nearbyint(value / quantum) * quantum;
  if (std::abs(rounded) < 0x1p128) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), rounded);
}

TEST(Bf16Test, HandComputedValues) {
  EXPECT_EQ(ToBf16(1.0f), 0x3F80);
  EXPECT_EQ(ToBf16(-2.0f), 0xC000);
  EXPECT_EQ(FromBf16(0x4049), 3.140625f);  // The bf16 nearest to pi.
  EXPECT_EQ(ToBf16(3.14159274f), 0x4049);
  EXPECT_EQ(ToBf16(1.00390625f), 0x3F80);    // 1 + 1/256, a tie: to even.
  EXPECT_EQ(ToBf16(1.01171875f), 0x3F82);    // 1 + 3/256, a tie: to even.
  EXPECT_EQ(ToBf16(3.4028234e38f), 0x7F80);  // The greatest float: infinity.
  EXPECT_EQ(ToBf16(-0.0f), 0x8000);
  EXPECT_EQ(ToBf16(1e-45f), 0);  // The least float.
}

TEST(Bf16Test, TakesTheNearestForEveryExponentAndTie) {
  for (const float value : Samples()) {
    const float rounded = FromBf16(ToBf16(value));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(rounded)) << std::bit_cast<uint32_t>(value);
    } else {
      ASSERT_EQ(rounded, Nearest(value)) << std::bit_cast<uint32_t>(value);
    }
    ASSERT_EQ(std::signbit(rounded), std::signbit(value));
  }
}

TEST(Bf16Test, ComesBackUnchanged) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = FromBf16(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(ToBf16(value), bits);
  }
}

// SplitQkv without a norm and angles only stores: what StoreElements does to
// every value is seen in K.
TEST(Bf16Test, KernelsStoreTheSameOnEveryTarget) {
  constexpr AttentionShape kShape{
      .num_heads = 1, .num_kv_heads = 1, .head_dim = 1001};  // A rest, too.
  constexpr int32_t kDim = kShape.head_dim;
  std::vector<float> samples = Samples();
  const int32_t rows = static_cast<int32_t>(samples.size() / kDim) + 1;
  samples.resize(size_t(rows) * kDim);
  std::vector<float> qkv(samples.size() * 3);
  for (int32_t r = 0; r < rows; ++r) {
    std::copy_n(samples.begin() + r * kDim, kDim,
                qkv.begin() + (3 * r + 1) * kDim);  // Between q and v.
  }
  const ColumnBlocks blocks = EvenBlocks(qkv, 3 * kDim, 1);
  const int32_t page_size = (rows + 7) / 8 * 8;
  PagedKv kv{.type = ElementType::kBf16, .page_size = page_size};
  kv.value_offset = KvArrayBytes(kv, kDim);
  std::vector<std::byte> page(2 * kv.value_offset);
  std::vector<KvSlot> slots(rows);
  for (int32_t r = 0; r < rows; ++r) slots[r] = {page.data(), r};
  std::vector<float> q(samples.size());
  SerialExecutor executor;
  ForEachTarget([&] {
    std::fill(page.begin(), page.end(), std::byte{0xAB});
    SplitQkv(blocks, {0, rows}, kShape, {}, kv, slots, q, executor);
    for (size_t i = 0; i < samples.size(); ++i) {
      const int32_t row = static_cast<int32_t>(i / kDim);
      const int32_t column = static_cast<int32_t>(i % kDim);
      uint16_t stored;
      std::memcpy(&stored, KeyPlace(kv, page.data(), 0, row, column),
                  sizeof(stored));
      ASSERT_EQ(stored, ToBf16(samples[i]))
          << std::bit_cast<uint32_t>(samples[i]);
    }
  });
}

}  // namespace
}  // namespace folio
