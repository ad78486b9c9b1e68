#include "runtime/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/runtime/kernels/each_target.h"
#include "tests/runtime/kernels/matrices.h"
#include "tests/support/random_floats.h"
#include "tests/support/sanitized.h"
#include "tests/support/test_executors.h"

namespace folio {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int32_t kWidths[] = {1, 2, 3, 15, 16, 17, 64, 100, 577, 1001};
constexpr int kMaxWorkers = 8;

TEST(AddColumnBlocksTest, AddsEachElement) {
  constexpr int32_t kRows = 21;
  ForEachTarget([] {
    for (int32_t cols : kWidths) {
      const std::vector<float> x = RandomFloats(1, kRows * cols, 1);
      const std::vector<float> y = RandomFloats(2, kRows * cols, 1);
      for (int32_t workers : {1, 2, 3}) {
        BackwardExecutor executor(workers);
        std::vector<float> sum = x;
        AddColumnBlocks(EvenBlocks(y, cols, workers), {0, kRows}, sum,
                        executor);
        for (size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], x[i] + y[i]);
      }
    }
  });
}

// A function from the columns of a product to Activations.
struct Function {
  std::string name;
  int32_t in_per_out;  // Columns of the product for each one of the result.
  std::function<void(const ColumnBlocks&, Rows, Activations&, Executor&)> run;
};

class FunctionTest : public testing::TestWithParam<Function> {
 protected:
  // Random rows of the product, with the numbers that are no numbers at the
  // end of each.
  std::vector<float> MakeInput(int32_t rows, int32_t cols) const {
    const int32_t in_cols = cols * GetParam().in_per_out;
    std::vector<float> y = RandomFloats(3, size_t(rows) * in_cols, 20);
    for (int32_t r = 0; r < rows; ++r) {
      constexpr float kSpecial[] = {kNan, kInfinity, -kInfinity, 1e30f, -1e30f};
      y[size_t(r + 1) * in_cols - 1] = kSpecial[r % 5];
    }
    return y;
  }

  Activations Run(const ColumnBlocks& y, ElementType type,
                  Executor& executor) const {
    Activations out(type, y.max_rows(), y.cols() / GetParam().in_per_out,
                    kMaxWorkers);
    GetParam().run(y, {0, y.max_rows()}, out, executor);
    return out;
  }
};

TEST_P(FunctionTest, Bf16IsTheRoundedF32) {
  constexpr int32_t kRows = 7;
  SerialExecutor executor;
  ForEachTarget([&] {
    for (int32_t cols : kWidths) {
      const ColumnBlocks y =
          EvenBlocks(MakeInput(kRows, cols), cols * GetParam().in_per_out, 3);
      Activations f32 = Run(y, ElementType::kF32, executor);
      Activations bf16 = Run(y, ElementType::kBf16, executor);
      EXPECT_TRUE(IsRounded(bf16, f32)) << cols << " columns";
    }
  });
}

TEST_P(FunctionTest, DoesNotDependOnCutsRowsOrThreads) {
  constexpr int32_t kRows = 37;
  SerialExecutor serial;
  const auto parallel = MakeParallelTestExecutor(2);
  ForEachTarget([&] {
    for (int32_t cols : {16, 101, 400}) {
      const int32_t in_cols = cols * GetParam().in_per_out;
      const std::vector<float> y = MakeInput(kRows, cols);
      Activations whole =
          Run(EvenBlocks(y, in_cols, 1), ElementType::kF32, serial);
      const std::vector<float> expected = Values(whole, kRows);
      for (int32_t num_blocks = 1; num_blocks <= 50; ++num_blocks) {
        const ColumnBlocks blocks = EvenBlocks(y, in_cols, num_blocks);
        Activations out = Run(blocks, ElementType::kF32, *parallel);
        ASSERT_TRUE(SameBits(Values(out, kRows), expected))
            << cols << " columns in " << num_blocks << " blocks";
      }
      for (int32_t row : {0, 1, kRows - 1}) {
        const auto one = std::span(y).subspan(size_t(row) * in_cols, in_cols);
        Activations out =
            Run(EvenBlocks(one, in_cols, 2), ElementType::kF32, serial);
        EXPECT_TRUE(SameBits(Values(out, 1),
                             std::span(expected).subspan(row * cols, cols)));
      }
    }
  });
}

TEST_P(FunctionTest, LeavesOtherRowsAlone) {
  const ColumnBlocks y =
      EvenBlocks(MakeInput(5, 33), 33 * GetParam().in_per_out, 2);
  Activations out(ElementType::kF32, 5, 33, kMaxWorkers);
  SetRows(out, 0, std::vector<float>(5 * 33, 7.0f));
  SerialExecutor executor;
  GetParam().run(y, {1, 3}, out, executor);
  std::vector<float> values = Values(out, 5);
  for (size_t i = 0; i < 33; ++i) EXPECT_EQ(values[i], 7.0f);
  for (size_t i = 4 * 33; i < values.size(); ++i) EXPECT_EQ(values[i], 7.0f);
  // Row 0 of y is the first of the rows.
  Activations whole = Run(y, ElementType::kF32, executor);
  EXPECT_TRUE(
      SameBits(std::span(values).subspan(33, 3 * 33), Values(whole, 3)));
}

INSTANTIATE_TEST_SUITE_P(All, FunctionTest,
                         testing::Values(Function{"GeluErf", 1, GeluErf},
                                         Function{"GeluTanh", 1, GeluTanh},
                                         Function{"SwiGlu", 2, SwiGlu}),
                         [](const auto& test) { return test.param.name; });

double ExactGeluErf(double y) {
  return y / 2 * (1 + std::erf(y / std::sqrt(2.0)));
}
double ExactGeluTanh(double y) {
  const double pi = std::acos(-1.0);
  return y / 2 *
         (1 + std::tanh(std::sqrt(2 / pi) * (y + 0.044715 * y * y * y)));
}
double ExactSilu(double g) { return g / (1 + std::exp(-g)); }

// A fine grid over where the functions bend, and some numbers far away.
std::vector<float> Arguments() {
  std::vector<float> y;
  const int32_t step = kSanitized ? 37 : 1;
  for (int32_t i = -120000; i <= 120000; i += step) y.push_back(i * 0x1p-13f);
  for (float far : {10.0f, 17.0f, 20.0f, 44.0f, 87.0f, 88.0f, 88.5f, 89.0f,
                    100.0f, 103.0f, 104.0f, 105.0f, 1e4f, 1e13f, 1e30f}) {
    y.push_back(far);
    y.push_back(-far);
  }
  for (float tiny : {0.0f, 1e-45f, 1e-38f, 1e-20f}) {
    y.push_back(tiny);
    y.push_back(-tiny);
  }
  return y;
}

// Checks |f - exact| <= bound * max(1, |y|) on every target.
void ExpectGelu(const std::function<void(const ColumnBlocks&, Rows,
                                         Activations&, Executor&)>& run,
                double (*exact)(double), double bound) {
  const std::vector<float> y = Arguments();
  const int32_t cols = static_cast<int32_t>(y.size());
  SerialExecutor executor;
  ForEachTarget([&] {
    Activations out(ElementType::kF32, 1, cols, kMaxWorkers);
    run(EvenBlocks(y, cols, 2), {0, 1}, out, executor);
    const std::vector<float> values = Values(out, 1);
    for (int32_t i = 0; i < cols; ++i) {
      const double x = y[i];
      ASSERT_LT(std::abs(values[i] - exact(x)) / std::max(1.0, std::abs(x)),
                bound)
          << x;
    }
  });
}

TEST(GeluErfTest, ErrsByNoMoreThanItSays) {
  ExpectGelu(GeluErf, ExactGeluErf, 2e-7);
}
TEST(GeluTanhTest, ErrsByNoMoreThanItSays) {
  ExpectGelu(GeluTanh, ExactGeluTanh, 4e-7);
}

// The result for each pair of gate and up, on the current target.
std::vector<float> SwiGluOf(std::span<const float> gate,
                            std::span<const float> up) {
  std::vector<float> y(gate.begin(), gate.end());
  y.insert(y.end(), up.begin(), up.end());
  const int32_t cols = static_cast<int32_t>(gate.size());
  Activations out(ElementType::kF32, 1, cols, kMaxWorkers);
  SerialExecutor executor;
  SwiGlu(EvenBlocks(y, 2 * cols, 3), {0, 1}, out, executor);
  return Values(out, 1);
}

TEST(SwiGluTest, ErrsByNoMoreThanItSays) {
  const std::vector<float> gate = Arguments();
  const std::vector<float> up = RandomFloats(10, gate.size(), 3);
  ForEachTarget([&] {
    const std::vector<float> out = SwiGluOf(gate, up);
    for (size_t i = 0; i < gate.size(); ++i) {
      const double exact = ExactSilu(gate[i]) * up[i];
      const double bound =
          1e-6 * std::abs(exact) + 2e-36 * std::max(1.0f, std::abs(up[i]));
      ASSERT_NEAR(out[i], exact, bound) << gate[i] << " times " << up[i];
    }
  });
}

// What is no number must not look like one afterwards; what is too great for
// exp must not become one.
TEST(FunctionExtremesTest, AreThoseOfTheDefinition) {
  SerialExecutor executor;
  ForEachTarget([&] {
    const std::vector<float> y = {kNan,  -kNan, kInfinity, 1e30f, -1e30f,
                                  104.f, -1e5f, 0.0f,      -0.0f, -kInfinity};
    const int32_t cols = static_cast<int32_t>(y.size());
    const std::vector<float> ones(cols, 1.0f);
    Activations erf(ElementType::kF32, 1, cols, kMaxWorkers);
    Activations tanh(ElementType::kF32, 1, cols, kMaxWorkers);
    GeluErf(EvenBlocks(y, cols, 1), {0, 1}, erf, executor);
    GeluTanh(EvenBlocks(y, cols, 1), {0, 1}, tanh, executor);
    for (const std::vector<float>& out :
         {Values(erf, 1), Values(tanh, 1), SwiGluOf(y, ones)}) {
      EXPECT_TRUE(std::isnan(out[0]));
      EXPECT_TRUE(std::isnan(out[1]));
      EXPECT_EQ(out[2], kInfinity);
      EXPECT_EQ(out[3], 1e30f);
      EXPECT_EQ(out[4], 0.0f);
      EXPECT_EQ(out[5], 104.0f);
      EXPECT_EQ(out[6], 0.0f);
      EXPECT_EQ(out[7], 0.0f);
      EXPECT_EQ(out[8], 0.0f);
      // An infinity times 0.
      EXPECT_TRUE(std::isnan(out[9]));
    }
    const std::vector<float> up = {kNan, kInfinity, 1e30f, kNan};
    const std::vector<float> gate = {2.0f, -3.0f, 1e30f, -1e30f};
    const std::vector<float> out = SwiGluOf(gate, up);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_EQ(out[1], -kInfinity);
    EXPECT_EQ(out[2], kInfinity);
    EXPECT_TRUE(std::isnan(out[3]));
  });
}

// Which of the two norms, and what they read.
struct Norm {
  std::vector<float> weight;
  std::vector<float> bias;  // Empty: RmsNorm.
  float epsilon;

  Activations Run(std::span<const float> x, ElementType type,
                  Executor& executor) const {
    const int32_t cols = static_cast<int32_t>(weight.size());
    const int32_t rows = static_cast<int32_t>(x.size()) / cols;
    Activations out(type, rows, cols, kMaxWorkers);
    if (bias.empty()) {
      RmsNorm(x, {0, rows}, weight, epsilon, out, executor);
    } else {
      LayerNorm(x, {0, rows}, weight, bias, epsilon, out, executor);
    }
    return out;
  }

  void RunAndAdd(const ColumnBlocks& y, Rows rows, std::span<float> x,
                 Activations& out, Executor& executor) const {
    if (bias.empty()) {
      AddAndRmsNorm(y, rows, x, weight, epsilon, out, executor);
    } else {
      AddAndLayerNorm(y, rows, x, weight, bias, epsilon, out, executor);
    }
  }
};

Norm MakeNorm(int32_t cols, bool has_bias, float epsilon) {
  return {RandomFloats(5, cols, 2),
          has_bias ? RandomFloats(6, cols, 1) : std::vector<float>(), epsilon};
}

TEST(LayerNormTest, AgreesWithDoublePrecision) {
  constexpr int32_t kRows = 5;
  const auto executor = MakeParallelTestExecutor(2);
  const auto check = [&](int32_t cols, float epsilon) {
    const Norm norm = MakeNorm(cols, /*has_bias=*/true, epsilon);
    std::vector<float> x = RandomFloats(4, kRows * cols, 3);
    for (float& v : x) v += 20;  // A mean that must not cost digits.
    Activations activations = norm.Run(x, ElementType::kF32, *executor);
    const std::vector<float> out = Values(activations, kRows);
    for (int32_t r = 0; r < kRows; ++r) {
      const float* row = x.data() + r * cols;
      double mean = 0;
      for (int32_t c = 0; c < cols; ++c) mean += double{row[c]} / cols;
      double variance = 0;
      for (int32_t c = 0; c < cols; ++c) {
        variance += (row[c] - mean) * (row[c] - mean) / cols;
      }
      const double scale = 1 / std::sqrt(variance + epsilon);
      // The mean, below 23, is a sum of cols numbers in any order, off by at
      // most cols * 23 * 2^-24 (far less in practice). The variance is one,
      // too, of squares: its relative error is at most (cols + 4) * 2^-24, and
      // scale's half of that. Everything else is a few roundings.
      const double mean_error = (cols + 1) * 23 * 0x1p-24;
      for (int32_t c = 0; c < cols; ++c) {
        const double centred = (row[c] - mean) * scale * norm.weight[c];
        const double exact = centred + norm.bias[c];
        const double bound =
            4 * scale * mean_error +
            (0.5 * cols + 8) * 0x1p-24 * (std::abs(centred) + 1);
        ASSERT_NEAR(out[r * cols + c], exact, bound)
            << "columns " << cols << " row " << r << " column " << c;
      }
    }
  };
  ForEachTarget([&] {
    for (int32_t cols : kWidths) {
      for (float epsilon : {1e-12f, 1e-5f, 0.5f}) check(cols, epsilon);
    }
  });
}

TEST(RmsNormTest, AgreesWithDoublePrecision) {
  constexpr int32_t kRows = 5;
  const auto executor = MakeParallelTestExecutor(2);
  const auto check = [&](int32_t cols, float epsilon, float size) {
    const Norm norm = MakeNorm(cols, /*has_bias=*/false, epsilon);
    const std::vector<float> x = RandomFloats(4, kRows * cols, size);
    Activations activations = norm.Run(x, ElementType::kF32, *executor);
    const std::vector<float> out = Values(activations, kRows);
    for (int32_t r = 0; r < kRows; ++r) {
      const float* row = x.data() + r * cols;
      double squares = 0;
      for (int32_t c = 0; c < cols; ++c) squares += double{row[c]} * row[c];
      const double scale = 1 / std::sqrt(squares / cols + epsilon);
      for (int32_t c = 0; c < cols; ++c) {
        const double exact = row[c] * scale * norm.weight[c];
        // The sum of squares, none of them negative, has a relative error of at
        // most cols * 2^-24 in any order, two operations more make it the
        // argument of the root, which halves that; the root, 1 / root and two
        // products round once each.
        const double bound = (0.5 * (cols + 2) + 4) * 0x1p-24;
        // (1e-44: products that are no normal numbers.)
        ASSERT_NEAR(out[r * cols + c], exact, bound * std::abs(exact) + 1e-44)
            << "columns " << cols << " row " << r << " column " << c;
      }
    }
  };
  ForEachTarget([&] {
    for (int32_t cols : kWidths) {
      for (float epsilon : {1e-6f, 1e-5f, 0.5f}) {
        for (float size : {1e-4f, 3.0f, 1e4f}) check(cols, epsilon, size);
      }
    }
  });
}

TEST(NormTest, HandComputedValues) {
  SerialExecutor executor;
  const std::vector<float> x = {1, 7, 0, 0};
  ForEachTarget([&] {
    // Mean of squares 25; 1 / sqrt(25 + 24) = 1 / 7. A row of zeros stays that.
    Activations rms = Norm{{14, 2}, {}, 24}.Run(x, ElementType::kF32, executor);
    const std::vector<float> rms_values = Values(rms, 2);
    EXPECT_FLOAT_EQ(rms_values[0], 2);
    EXPECT_FLOAT_EQ(rms_values[1], 2);
    EXPECT_EQ(rms_values[2], 0);
    EXPECT_EQ(rms_values[3], 0);
    // Mean 4, variance 9; 1 / sqrt(9 + 16) = 1 / 5. Zeros give the bias.
    Activations layer =
        Norm{{5, 10}, {1, -2}, 16}.Run(x, ElementType::kF32, executor);
    const std::vector<float> layer_values = Values(layer, 2);
    EXPECT_FLOAT_EQ(layer_values[0], -2);
    EXPECT_FLOAT_EQ(layer_values[1], 4);
    EXPECT_EQ(layer_values[2], 1);
    EXPECT_EQ(layer_values[3], -2);
  });
}

TEST(NormTest, Bf16IsTheRoundedF32) {
  SerialExecutor executor;
  ForEachTarget([&] {
    for (bool has_bias : {false, true}) {
      for (int32_t cols : kWidths) {
        const Norm norm = MakeNorm(cols, has_bias, 1e-5f);
        std::vector<float> x = RandomFloats(7, 3 * cols, 3);
        x[cols] = kNan;
        x[2 * cols] = kInfinity;
        Activations f32 = norm.Run(x, ElementType::kF32, executor);
        Activations bf16 = norm.Run(x, ElementType::kBf16, executor);
        EXPECT_TRUE(IsRounded(bf16, f32)) << cols << " columns";
        EXPECT_FALSE(std::isnan(Values(f32, 1)[0]));
        for (int32_t c = 0; c < cols; ++c) {
          EXPECT_TRUE(std::isnan(Values(f32, 2)[cols + c]));
        }
      }
    }
  });
}

TEST(NormTest, RowsDoNotDependOnTheBatch) {
  constexpr int32_t kRows = 40;
  constexpr int32_t kCols = 77;
  const std::vector<float> x = RandomFloats(7, kRows * kCols, 3);
  const auto parallel = MakeParallelTestExecutor(2);
  SerialExecutor serial;
  for (bool has_bias : {false, true}) {
    const Norm norm = MakeNorm(kCols, has_bias, 1e-5f);
    Activations all = norm.Run(x, ElementType::kF32, *parallel);
    const std::vector<float> expected = Values(all, kRows);
    for (int32_t r = 0; r < kRows; ++r) {
      Activations one = norm.Run(std::span(x).subspan(r * kCols, kCols),
                                 ElementType::kF32, serial);
      EXPECT_TRUE(SameBits(Values(one, 1),
                           std::span(expected).subspan(r * kCols, kCols)));
    }
  }
}

// Adding and normalising in one pass is doing the one after the other; and rows
// may come in strips, each with a product of its own.
TEST(AddAndNormTest, IsBothInOrder) {
  constexpr int32_t kRows = 23;
  SerialExecutor executor;
  ForEachTarget([&] {
    for (int32_t cols : {1, 33, 576}) {
      for (bool has_bias : {false, true}) {
        const Norm norm = MakeNorm(cols, has_bias, 1e-5f);
        const std::vector<float> y = RandomFloats(8, kRows * cols, 1);
        std::vector<float> sum = RandomFloats(9, kRows * cols, 1);
        std::vector<float> sum_of_strips = sum;
        AddColumnBlocks(EvenBlocks(y, cols, 2), {0, kRows}, sum, executor);
        Activations expected = norm.Run(sum, ElementType::kF32, executor);
        Activations out(ElementType::kF32, kRows, cols, kMaxWorkers);
        for (const Rows rows : {Rows{0, 9}, Rows{9, 1}, Rows{10, 13}}) {
          const auto part = std::span(y).subspan(size_t(rows.first) * cols,
                                                 size_t(rows.count) * cols);
          norm.RunAndAdd(EvenBlocks(part, cols, 3), rows, sum_of_strips, out,
                         executor);
        }
        EXPECT_TRUE(SameBits(sum_of_strips, sum));
        EXPECT_TRUE(SameBits(Values(out, kRows), Values(expected, kRows)));
      }
    }
  });
}

}  // namespace
}  // namespace folio
