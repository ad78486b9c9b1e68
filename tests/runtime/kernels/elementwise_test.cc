#include "runtime/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/runtime/kernels/each_target.h"
#include "tests/support/random_floats.h"
#include "tests/support/test_executors.h"

namespace folio {
namespace {

// Fills [rows, cols] from row-major values.
ColumnBlocks Blocks(std::span<const float> values, int32_t rows, int32_t cols,
                    int32_t num_blocks) {
  ColumnBlocks blocks(rows, ColumnBlocks::EvenCuts(cols, num_blocks));
  for (int32_t b = 0; b < blocks.num_blocks(); ++b) {
    const int32_t width = blocks.block_cols(b);
    for (int32_t r = 0; r < rows; ++r) {
      for (int32_t c = 0; c < width; ++c) {
        blocks.block_data(b)[r * width + c] =
            values[size_t(r) * cols + blocks.first_column(b) + c];
      }
    }
  }
  return blocks;
}

TEST(AddColumnBlocksTest, AddsEachElement) {
  constexpr int32_t kRows = 21;
  for (int32_t cols : {1, 15, 16, 17, 100, 577}) {
    const std::vector<float> x = RandomFloats(1, kRows * cols, 1);
    const std::vector<float> y = RandomFloats(2, kRows * cols, 1);
    for (int32_t workers : {1, 2, 3}) {
      BackwardExecutor executor(workers);
      std::vector<float> sum = x;
      AddColumnBlocks(Blocks(y, kRows, cols, workers), kRows, sum, executor);
      for (size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], x[i] + y[i]);
    }
  }
}

TEST(GeluErfTest, ErrsByNoMoreThanItSays) {
  // A fine grid over where erf is not yet +-1, and some far away.
  std::vector<float> y;
  for (int32_t i = -120000; i <= 120000; ++i) y.push_back(i * 0x1p-14f);
  for (float far : {-1e30f, -100.0f, -0.0f, 100.0f, 1e30f}) y.push_back(far);
  const int32_t cols = static_cast<int32_t>(y.size());
  std::vector<float> out(y.size());
  SerialExecutor executor;
  ForEachTarget([&] {
    GeluErf(Blocks(y, 1, cols, 2), 1, out, executor);
    double worst = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      const double x = y[i];
      const double exact = x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
      worst = std::max(worst,
                       std::abs(out[i] - exact) / std::max(1.0, std::abs(x)));
    }
    EXPECT_LT(worst, 2e-7);
  });
}

TEST(GeluErfTest, DoesNotDependOnBlocksOrThreads) {
  constexpr int32_t kRows = 37;
  constexpr int32_t kCols = 101;
  const std::vector<float> y = RandomFloats(3, kRows * kCols, 4);
  SerialExecutor serial;
  std::vector<float> expected(y.size());
  GeluErf(Blocks(y, kRows, kCols, 1), kRows, expected, serial);
  const auto parallel = MakeParallelTestExecutor(2);
  for (int32_t num_blocks : {1, 2, 3, 7}) {
    std::vector<float> out(y.size());
    GeluErf(Blocks(y, kRows, kCols, num_blocks), kRows, out, *parallel);
    EXPECT_EQ(out, expected) << num_blocks << " blocks";
  }
}

TEST(LayerNormTest, AgreesWithDoublePrecision) {
  ForEachTarget([] {
    constexpr int32_t kRows = 19;
    for (int32_t cols : {1, 2, 16, 17, 64, 576, 1001}) {
      std::vector<float> x = RandomFloats(4, kRows * cols, 3);
      for (float& v : x) v += 20;  // A mean that must not cost digits.
      const std::vector<float> weight = RandomFloats(5, cols, 2);
      const std::vector<float> bias = RandomFloats(6, cols, 1);
      std::vector<float> out(x.size());
      const auto executor = MakeParallelTestExecutor(2);
      LayerNorm(x, kRows, weight, bias, out, *executor);
      for (int32_t r = 0; r < kRows; ++r) {
        const float* row = x.data() + r * cols;
        double mean = 0;
        for (int32_t c = 0; c < cols; ++c) mean += double{row[c]} / cols;
        double variance = 0;
        for (int32_t c = 0; c < cols; ++c) {
          variance += (row[c] - mean) * (row[c] - mean) / cols;
        }
        const double scale = 1 / std::sqrt(variance + 1e-5);
        // The mean, below 23, is a sum of cols numbers over at least 4 lanes'
        // accumulators, or none: off by at most cols * 23 * 2^-24 (far less in
        // practice); everything else by a few roundings of numbers below 12.
        const double mean_error = (cols / 4 + 8) * 23 * 0x1p-24;
        for (int32_t c = 0; c < cols; ++c) {
          const double exact = (row[c] - mean) * scale * weight[c] + bias[c];
          ASSERT_NEAR(out[r * cols + c], exact,
                      2 * scale * mean_error + 64 * 0x1p-24)
              << "columns " << cols << " row " << r << " column " << c;
        }
      }
    }
  });
}

TEST(LayerNormTest, RowsDoNotDependOnTheBatch) {
  constexpr int32_t kRows = 40;
  constexpr int32_t kCols = 77;
  const std::vector<float> x = RandomFloats(7, kRows * kCols, 3);
  const std::vector<float> weight = RandomFloats(8, kCols, 2);
  const std::vector<float> bias = RandomFloats(9, kCols, 1);
  std::vector<float> all(x.size());
  const auto parallel = MakeParallelTestExecutor(2);
  LayerNorm(x, kRows, weight, bias, all, *parallel);
  SerialExecutor serial;
  for (int32_t r = 0; r < kRows; ++r) {
    std::vector<float> one(kCols);
    LayerNorm(std::span(x).subspan(r * kCols), 1, weight, bias, one, serial);
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + r * kCols));
  }
}

}  // namespace
}  // namespace folio
