#include "runtime/kernels/vocab_reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/runtime/kernels/each_target.h"
#include "tests/runtime/kernels/logits_rows.h"
#include "tests/support/sanitized.h"

namespace folio {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int32_t kSizes[] = {1,
                              5,
                              16,
                              17,
                              63,
                              64,
                              100,
                              128,
                              1023,
                              1024,
                              1025,
                              4099,
                              kSanitized ? 5003 : 50257};

float Max(const std::vector<float>& values) {
  return *std::max_element(values.begin(), values.end());
}

// With maxima and without.
MaxResult MaxOfBoth(const std::vector<float>& values, int32_t num_blocks) {
  ColumnBlocks blocks = Blocks(values, num_blocks);
  const MaxResult plain = ArgMax(blocks, 1);
  blocks.KeepMaxima();
  for (int32_t b = 0; b < blocks.num_blocks(); ++b) {
    // In two pieces.
    const int32_t cols = blocks.block_cols(b);
    const int32_t middle = cols / 2 / ColumnBlocks::kStripe * 64;
    FindMaxima(b, middle, cols, /*rows=*/2, blocks);
    FindMaxima(b, 0, middle, /*rows=*/2, blocks);
  }
  const MaxResult result = ArgMax(blocks, 1);
  EXPECT_EQ(result.index, plain.index);
  EXPECT_EQ(result.value, plain.value);
  EXPECT_EQ(result.has_nan, plain.has_nan);
  return result;
}

TEST(ArgMaxTest, FindsTheFirstMaximumWhereverColumnsAreCut) {
  ForEachTarget([] {
    for (int32_t size : kSizes) {
      for (uint64_t seed = 0; seed < 20; ++seed) {
        std::vector<float> values = Logits(seed, size);
        // Coarse, so that there are many equal maxima.
        if (seed % 2 == 1) {
          for (float& v : values) v = std::round(v);
        }
        const auto expected = std::max_element(values.begin(), values.end());
        for (int32_t blocks = 1; blocks <= 4; ++blocks) {
          const MaxResult max = MaxOfBoth(values, blocks);
          ASSERT_EQ(max.index, expected - values.begin())
              << "size " << size << " seed " << seed << " blocks " << blocks;
          ASSERT_EQ(max.value, *expected);
          ASSERT_FALSE(max.has_nan);
        }
      }
    }
  });
}

TEST(ArgMaxTest, SeesANanInAnyPlace) {
  ForEachTarget([] {
    for (int32_t size : {1, 17, 130, 1100}) {
      for (int32_t place = 0; place < size; ++place) {
        std::vector<float> values = Logits(1, size);
        values[place] = kNan;
        const MaxResult max = MaxOfBoth(values, 2);
        ASSERT_TRUE(max.has_nan) << place << " of " << size;
        values[place] = -kInfinity;
        const MaxResult without = MaxOfBoth(values, 2);
        ASSERT_EQ(max.value, without.value);
        if (size > 1) {
          ASSERT_EQ(max.index, without.index);
        }
      }
    }
  });
}

TEST(ArgMaxTest, HandlesInfinities) {
  std::vector<float> values(100, -kInfinity);
  EXPECT_EQ(MaxOfBoth(values, 2).index, 0);
  EXPECT_EQ(MaxOfBoth(values, 2).value, -kInfinity);
  EXPECT_FALSE(MaxOfBoth(values, 2).has_nan);
  values[70] = kInfinity;
  EXPECT_EQ(MaxOfBoth(values, 2).index, 70);
  EXPECT_FALSE(MaxOfBoth(values, 2).has_nan);
}

TEST(LogSumExpTest, AgreesWithDoublePrecisionWhereverColumnsAreCut) {
  ForEachTarget([] {
    for (int32_t size : kSizes) {
      for (float inverse_temperature : {0.0f, 0.5f, 1.0f, 3.0f}) {
        const std::vector<float> values = Logits(size, size);
        double sum = 0;
        for (float v : values) sum += std::exp(double{v} * inverse_temperature);
        const double result =
            LogSumExp(Blocks(values, 1), 1, Max(values), inverse_temperature);
        // The exponent, at most 72, is rounded twice, exp is off by 1 ulp, and
        // 16 weights are added in f32: below (2 * 72 + 2 + 16) * 2^-24
        // relative.
        EXPECT_NEAR(result, std::log(sum), 162 * 0x1p-24) << size;
        for (int32_t blocks = 2; blocks <= 4; ++blocks) {
          EXPECT_EQ(LogSumExp(Blocks(values, blocks), 1, Max(values),
                              inverse_temperature),
                    result);
        }
      }
    }
  });
}

TEST(LogSumExpTest, IgnoresMinusInfinity) {
  std::vector<float> values(40, -kInfinity);
  values[3] = 2;
  values[30] = 2;
  EXPECT_DOUBLE_EQ(LogSumExp(Blocks(values, 2), 1, 2, 1), 2 + std::log(2.0));
}

TEST(TopKTest, IsTheFrontOfAStableSort) {
  ForEachTarget([] {
    for (int32_t size : kSizes) {
      for (uint64_t seed = 0; seed < 4; ++seed) {
        std::vector<float> values = Logits(seed + 50, size);
        if (seed % 2 == 1) {
          for (float& v : values) v = std::round(v);
        }
        if (seed == 2) std::sort(values.begin(), values.end());
        std::vector<IndexedValue> sorted;
        for (int32_t i = 0; i < size; ++i) sorted.push_back({i, values[i]});
        std::stable_sort(sorted.begin(), sorted.end(),
                         [](const IndexedValue& a, const IndexedValue& b) {
                           return a.value > b.value;
                         });
        std::vector<IndexedValue> top;
        for (int32_t k : {1, 2, 5, 40, 300, 60000}) {
          TopK(Blocks(values, 1 + seed % 4), 1, k, top);
          const std::vector<IndexedValue> expected(
              sorted.begin(), sorted.begin() + std::min(k, size));
          ASSERT_EQ(top, expected)
              << "size " << size << " seed " << seed << " k " << k;
        }
      }
    }
  });
}

TEST(TopKTest, LeavesOutNansAndKeepsMinusInfinity) {
  const std::vector<float> values = {kNan, -kInfinity, 1, kNan, 2};
  std::vector<IndexedValue> top;
  TopK(Blocks(values, 1), 1, 5, top);
  EXPECT_THAT(top, testing::ElementsAre(IndexedValue{4, 2}, IndexedValue{2, 1},
                                        IndexedValue{1, -kInfinity}));
}

}  // namespace
}  // namespace folio
