#include "runtime/kernels/linear.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "tests/runtime/kernels/each_target.h"
#include "tests/runtime/kernels/matrices.h"
#include "tests/support/random_floats.h"
#include "tests/support/sanitized.h"
#include "tests/support/test_executors.h"

namespace folio {
namespace {

struct Shape {
  int32_t in;
  int32_t out;
};

// Widths that are not multiples of anything, and those of real models. Packing
// goes by 64 columns, bf16 by pairs of `in`.
constexpr Shape kShapes[] = {
    {1, 1},    {1, 50},    {2, 16},    {3, 63},     {7, 5},     {10, 33},
    {64, 192}, {65, 128},  {250, 129}, {351, 65},   {256, 64},  {100, 1009},
    {333, 96}, {576, 200}, {576, 960}, {1535, 144}, {2304, 576}};

// Weights and x hold numbers of `type`, so that nothing is rounded on the way.
struct Problem {
  Problem(const Shape& shape, ElementType type, int32_t num_rows, uint64_t seed)
      : in(shape.in),
        out(shape.out),
        rows(num_rows),
        weight(OnGrid(RandomFloats(seed, size_t(shape.in) * shape.out, 1),
                      shape.in, type)),
        bias(RandomFloats(seed + 1, shape.out, 1)),
        x(OnGrid(RandomFloats(seed + 2, size_t(num_rows) * shape.in, 1),
                 shape.in, ActivationTypeFor(type))) {}

  LinearWeights Weights() const {
    const auto read = [this](int32_t first, std::span<float> some) {
      std::copy_n(weight.begin() + size_t(first) * in, some.size(),
                  some.begin());
    };
    return {.in = in, .out = out, .read_rows = read, .bias = bias};
  }

  std::span<const float> Rows(int32_t first, int32_t count) const {
    return std::span(x).subspan(size_t(first) * in, size_t(count) * in);
  }

  int32_t in;
  int32_t out;
  int32_t rows;
  std::vector<float> weight;
  std::vector<float> bias;
  std::vector<float> x;
};

// The maxima of y are what column_blocks.h says.
void ExpectMaxima(const ColumnBlocks& y, int32_t rows) {
  for (int32_t b = 0; b < y.num_blocks(); ++b) {
    for (int32_t r = 0; r < rows; ++r) {
      const std::span<const float> row = y.Row(b, r);
      const std::span<const float> maxima = y.Maxima(b, r);
      for (size_t i = 0; i < maxima.size(); ++i) {
        const size_t stripe = i / 16 * 64;
        float expected = -std::numeric_limits<float>::infinity();
        for (size_t c = stripe + i % 16; c < std::min(stripe + 64, row.size());
             c += 16) {
          // NaN once, and for ever.
          if (std::isnan(row[c]) || row[c] > expected) expected = row[c];
        }
        ASSERT_TRUE(maxima[i] == expected ||
                    (std::isnan(maxima[i]) && std::isnan(expected)))
            << "block " << b << " row " << r << " number " << i;
      }
    }
  }
}

// The products of `x`, which lies from row `first` on in the source: [rows,
// out]. Rows before it and after hold NaNs, which
// must not spread.
std::vector<float> Multiply(Linear& linear, std::span<const float> x,
                            Executor& executor, int32_t first = 0,
                            int32_t rows_to_spare = 0) {
  const int32_t rows = static_cast<int32_t>(x.size()) / linear.in();
  const int32_t source_rows = first + rows + 1;
  Activations source(linear.type(), source_rows, linear.in(),
                     /*num_workers=*/1);
  SetRows(source, 0,
          std::vector<float>(size_t(source_rows) * linear.in(),
                             std::numeric_limits<float>::quiet_NaN()));
  SetRows(source, first, x);
  ColumnBlocks y = linear.MakeOutput(rows + rows_to_spare);
  y.KeepMaxima();
  linear.Forward(source, {first, rows}, y, executor, /*next=*/&linear);
  ExpectMaxima(y, rows);
  std::vector<float> flat(size_t(rows) * y.cols());
  for (int32_t r = 0; r < rows; ++r) {
    y.CopyRow(r, 0, std::span(flat).subspan(size_t(r) * y.cols(), y.cols()));
  }
  return flat;
}

class LinearTest
    : public testing::TestWithParam<std::tuple<Shape, ElementType>> {
 protected:
  Shape shape() const { return std::get<0>(GetParam()); }
  ElementType type() const { return std::get<1>(GetParam()); }

  Problem MakeProblem(int32_t rows, uint64_t seed) const {
    return Problem(shape(), type(), rows, seed);
  }
  Linear Make(const Problem& p, Executor& executor) const {
    return Linear(p.Weights(), type(), executor);
  }
};

void ExpectNearExact(const Problem& p, std::span<const float> y) {
  for (int32_t r = 0; r < p.rows; ++r) {
    for (int32_t c = 0; c < p.out; ++c) {
      double exact = p.bias[c];
      double magnitude = std::abs(exact);
      for (int32_t k = 0; k < p.in; ++k) {
        const double product =
            double{p.x[size_t(r) * p.in + k]} * p.weight[size_t(c) * p.in + k];
        exact += product;
        magnitude += std::abs(product);
      }
      // Any order of n additions errs by at most n * 2^-24 of the sum of
      // magnitudes, to first order (Higham, "Accuracy and Stability", section
      // 4.2), products of f32 that are rounded first by one unit more; those of
      // bf16 and of integers are exact, and scales are powers of two.
      const double bound = (p.in + 2) * 0x1p-24 * magnitude;
      ASSERT_NEAR(y[size_t(r) * p.out + c], exact, bound)
          << "row " << r << " column " << c;
    }
  }
}

TEST_P(LinearTest, AgreesWithDoublePrecision) {
  constexpr int32_t kRows = 20;
  const Problem p = MakeProblem(kRows, /*seed=*/11);
  for (int workers : {1, 3}) {
    BackwardExecutor executor(workers);
    Linear linear = Make(p, executor);
    EXPECT_EQ(linear.in(), p.in);
    EXPECT_EQ(linear.out(), p.out);
    ForEachTarget([&] { ExpectNearExact(p, Multiply(linear, p.x, executor)); });
  }
}

TEST_P(LinearTest, RowsDoNotDependOnTheBatch) {
  constexpr int32_t kRows = 70;
  const Problem p = MakeProblem(kRows, /*seed=*/21);
  SerialExecutor executor;
  Linear linear = Make(p, executor);
  const std::vector<float> all = Multiply(linear, p.x, executor);
  for (int32_t rows = 1; rows <= kRows; rows += kSanitized ? 5 : 1) {
    // The last `rows` rows, so that each is at another place in the batch.
    const int32_t skipped = kRows - rows;
    const std::vector<float> some =
        Multiply(linear, p.Rows(skipped, rows), executor, /*first=*/rows % 3);
    ASSERT_TRUE(SameBits(some, std::span(all).subspan(size_t(skipped) * p.out)))
        << rows << " rows";
  }
}

TEST_P(LinearTest, RowsDoNotDependOnLimitsCutsOrThreads) {
  constexpr int32_t kRows = 19;
  const Problem p = MakeProblem(kRows, /*seed=*/31);
  SerialExecutor serial;
  Linear whole = Make(p, serial);
  const std::vector<float> expected = Multiply(whole, p.x, serial);
  std::vector<std::unique_ptr<Executor>> executors;
  for (int workers = 1; workers <= 8; workers += kSanitized ? 3 : 1) {
    executors.push_back(std::make_unique<BackwardExecutor>(workers));
  }
  executors.push_back(MakeParallelTestExecutor(2));
  for (const auto& executor : executors) {
    Linear cut = Make(p, *executor);
    for (int32_t rows : {1, 5, kRows}) {
      const auto expected_rows =
          std::span(expected).first(size_t(rows) * p.out);
      EXPECT_TRUE(
          SameBits(Multiply(cut, p.Rows(0, rows), *executor), expected_rows))
          << executor->num_workers() << " workers, " << rows << " rows";
      EXPECT_TRUE(SameBits(Multiply(cut, p.Rows(0, rows), serial, /*first=*/2,
                                    /*rows_to_spare=*/3),
                           expected_rows))
          << executor->num_workers() << " cuts, " << rows << " rows by one";
    }
  }
}

// As strips of a batch are.
TEST_P(LinearTest, WorkersMayMultiplyAtTheSameTime) {
  constexpr int32_t kRows = 24;
  constexpr int32_t kStrip = 8;
  const Problem p = MakeProblem(kRows, /*seed=*/35);
  const auto executor = MakeParallelTestExecutor(3);
  Linear linear = Make(p, *executor);
  const std::vector<float> expected = Multiply(linear, p.x, *executor);
  Activations x(type(), kRows, p.in, /*num_workers=*/1);
  SetRows(x, 0, p.x);
  std::vector<ColumnBlocks> y;
  for (int32_t i = 0; i < kRows / kStrip; ++i) {
    y.push_back(linear.MakeOutput(kStrip));
  }
  executor->ParallelFor(kRows / kStrip, [&](int strip, int worker) {
    SerialExecutor alone(worker);
    linear.Forward(x, {strip * kStrip, kStrip}, y[strip], alone);
  });
  std::vector<float> row(p.out);
  for (int32_t r = 0; r < kRows; ++r) {
    y[r / kStrip].CopyRow(r % kStrip, 0, row);
    EXPECT_TRUE(
        SameBits(row, std::span(expected).subspan(size_t(r) * p.out, p.out)));
  }
}

TEST_P(LinearTest, NanStaysInItsRow) {
  constexpr int32_t kRows = 9;
  Problem p = MakeProblem(kRows, /*seed=*/51);
  SerialExecutor executor;
  Linear linear = Make(p, executor);
  const std::vector<float> clean = Multiply(linear, p.x, executor);
  constexpr int32_t kBad = 4;
  p.x[size_t(kBad) * p.in + p.in / 2] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> y = Multiply(linear, p.x, executor);
  const auto part = [&](const std::vector<float>& all, int32_t first,
                        int32_t end) {
    return std::span(all).subspan(size_t(first) * p.out,
                                  size_t(end - first) * p.out);
  };
  EXPECT_TRUE(SameBits(part(y, 0, kBad), part(clean, 0, kBad)));
  EXPECT_TRUE(SameBits(part(y, kBad + 1, kRows), part(clean, kBad + 1, kRows)));
  for (const float value : part(y, kBad, kBad + 1)) {
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST_P(LinearTest, WorksWithoutBias) {
  Problem p = MakeProblem(3, /*seed=*/41);
  std::fill(p.bias.begin(), p.bias.end(), 0.0f);
  SerialExecutor executor;
  Linear with_zeros = Make(p, executor);
  p.bias.clear();
  Linear without = Make(p, executor);
  EXPECT_EQ(Multiply(without, p.x, executor),
            Multiply(with_zeros, p.x, executor));
}

// Weights are rounded by the Linear: those of f32 give what rounded ones give.
// (Integers: see integer_product_test.)
TEST_P(LinearTest, RoundsWeightsToItsType) {
  if (IsInteger(type())) return;
  Problem p = MakeProblem(2, /*seed=*/61);
  p.weight = RandomFloats(62, p.weight.size(), 1);
  SerialExecutor executor;
  Linear linear = Make(p, executor);
  p.weight = Rounded(p.weight, type());
  Linear rounded = Make(p, executor);
  EXPECT_TRUE(SameBits(Multiply(linear, p.x, executor),
                       Multiply(rounded, p.x, executor)));
}

TEST_P(LinearTest, ReadsEachRowOnceAndFewAtATime) {
  const Problem p = MakeProblem(1, /*seed=*/71);
  for (int workers : {1, 2, 7}) {
    std::vector<std::atomic<int>> reads(p.out);
    std::atomic<int32_t> most = 0;
    LinearWeights weights = p.Weights();
    weights.read_rows = [&](int32_t first, std::span<float> rows) {
      const int32_t count = static_cast<int32_t>(rows.size()) / p.in;
      for (int32_t r = 0; r < count; ++r) ++reads[first + r];
      if (count > most) most = count;
    };
    ThreadExecutor executor(workers);
    Linear linear(weights, type(), executor);
    for (const auto& count : reads) EXPECT_EQ(count, 1);
    EXPECT_LE(most, 64);
  }
}

std::string NameOfParam(
    const testing::TestParamInfo<LinearTest::ParamType>& test) {
  const auto& [shape, type] = test.param;
  return std::to_string(shape.in) + "to" + std::to_string(shape.out) +
         std::string(NameOf(type));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LinearTest,
    testing::Combine(testing::ValuesIn(kShapes),
                     testing::Values(ElementType::kF32, ElementType::kBf16,
                                     ElementType::kInt8, ElementType::kInt4)),
    NameOfParam);

TEST(LinearBytesTest, Bf16TakesHalf) {
  const Shape shape{128, 256};  // Whole packed blocks, nothing to fill up.
  SerialExecutor executor;
  for (ElementType type : {ElementType::kF32, ElementType::kBf16}) {
    const Problem p(shape, type, 1, /*seed=*/81);
    const Linear linear(p.Weights(), type, executor);
    EXPECT_EQ(linear.bytes(), 128 * 256 * BytesOf(type) + 256 * 4);
  }
}

TEST(LinearSmallShapesTest, AgreeWithDoublePrecision) {
  constexpr int32_t kRows = 3;
  SerialExecutor executor;
  for (ElementType type : {ElementType::kF32, ElementType::kBf16}) {
    for (int32_t in = 1; in <= 80; in += kSanitized ? 13 : 1) {
      for (int32_t out = 1; out <= 80; out += kSanitized ? 11 : 3) {
        SCOPED_TRACE(testing::Message() << in << " to " << out);
        const Problem p({in, out}, type, kRows, /*seed=*/91);
        Linear linear(p.Weights(), type, executor);
        ExpectNearExact(p, Multiply(linear, p.x, executor));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace folio
