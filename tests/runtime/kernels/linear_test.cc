#include "runtime/kernels/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "tests/runtime/kernels/each_target.h"
#include "tests/support/random_floats.h"
#include "tests/support/test_executors.h"

namespace folio {
namespace {

struct Shape {
  int32_t in;
  int32_t out;
};

void PrintTo(const Shape& shape, std::ostream* os) {
  *os << shape.in << "to" << shape.out;
}

// Widths that are not multiples of anything, and those of real models.
constexpr Shape kShapes[] = {{1, 1},      {7, 5},      {10, 33},
                             {64, 192},   {65, 128},   {256, 64},
                             {576, 1728}, {2304, 576}, {100, 1009}};

struct Problem {
  Problem(const Shape& shape, int32_t num_rows, uint64_t seed)
      : rows(num_rows),
        weight(RandomFloats(seed, size_t(shape.in) * shape.out, 1)),
        bias(RandomFloats(seed + 1, shape.out, 1)),
        x(RandomFloats(seed + 2, size_t(num_rows) * shape.in, 1)) {
    weights.in = shape.in;
    weights.out = shape.out;
    weights.weight = weight;
    weights.bias = bias;
  }

  int32_t rows;
  std::vector<float> weight;
  std::vector<float> bias;
  std::vector<float> x;
  LinearWeights weights;
};

// Row-major [rows, out].
std::vector<float> Flatten(const ColumnBlocks& y, int32_t rows) {
  std::vector<float> flat(size_t(rows) * y.cols());
  for (int32_t r = 0; r < rows; ++r) {
    y.CopyRow(r, 0, std::span(flat).subspan(size_t(r) * y.cols(), y.cols()));
  }
  return flat;
}

std::vector<float> Multiply(Linear& linear, std::span<const float> x,
                            int32_t rows, int32_t max_rows) {
  // Rows that are computed but not asked for hold NaNs, which must not spread.
  std::vector<float> source(size_t(RoundUpRows(rows, max_rows)) * linear.in(),
                            std::numeric_limits<float>::quiet_NaN());
  std::copy_n(x.begin(), size_t(rows) * linear.in(), source.begin());
  ColumnBlocks y = linear.MakeOutput();
  linear.Forward(source, rows, y);
  return Flatten(y, rows);
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TEST(RoundUpRowsTest, IsExactWhenSmallAndNeverFarOff) {
  constexpr int32_t kMax = 1000;
  int32_t previous = 0;
  for (int32_t rows = 1; rows <= kMax; ++rows) {
    const int32_t rounded = RoundUpRows(rows, kMax);
    EXPECT_GE(rounded, rows);
    EXPECT_LE(rounded, kMax);
    EXPECT_LE(rounded - rows, rows / 8);
    EXPECT_GE(rounded, previous);
    EXPECT_EQ(RoundUpRows(rounded, kMax), rounded);
    if (rows <= 16) {
      EXPECT_EQ(rounded, rows);
    }
    previous = rounded;
  }
  EXPECT_EQ(RoundUpRows(1000, 1000), 1000);
  EXPECT_EQ(RoundUpRows(17, 17), 17);
}

class LinearTest
    : public testing::TestWithParam<std::tuple<Shape, LinearPath>> {
 protected:
  Shape shape() const { return std::get<0>(GetParam()); }
  LinearPath path() const { return std::get<1>(GetParam()); }
};

TEST_P(LinearTest, AgreesWithDoublePrecision) {
  constexpr int32_t kRows = 20;
  const Problem p(shape(), kRows, /*seed=*/11);
  SerialExecutor executor;
  Linear linear(p.weights, kRows, &executor, path());
  ForEachTarget([&] {
    const std::vector<float> y = Multiply(linear, p.x, kRows, kRows);
    for (int32_t r = 0; r < kRows; ++r) {
      for (int32_t c = 0; c < shape().out; ++c) {
        double exact = p.bias[c];
        double magnitude = std::abs(exact);
        for (int32_t k = 0; k < shape().in; ++k) {
          const double product = double{p.x[size_t(r) * shape().in + k]} *
                                 p.weight[size_t(c) * shape().in + k];
          exact += product;
          magnitude += std::abs(product);
        }
        // Any order of n additions errs by at most n * 2^-24 of the sum of
        // magnitudes (Higham, "Accuracy and Stability", section 4.2).
        const double bound = (shape().in + 1) * 0x1p-24 * magnitude;
        ASSERT_NEAR(y[size_t(r) * shape().out + c], exact, bound)
            << "row " << r << " column " << c;
      }
    }
  });
}

TEST_P(LinearTest, RowsDoNotDependOnTheBatch) {
  constexpr int32_t kRows = 70;
  const Problem p(shape(), kRows, /*seed=*/21);
  SerialExecutor executor;
  Linear linear(p.weights, kRows, &executor, path());
  const std::vector<float> all = Multiply(linear, p.x, kRows, kRows);
  for (int32_t rows = 1; rows <= kRows; ++rows) {
    // The last `rows` rows, so that each is at another place in the batch.
    const size_t skipped = size_t(kRows - rows);
    const std::vector<float> some = Multiply(
        linear, std::span(p.x).subspan(skipped * shape().in), rows, kRows);
    ASSERT_TRUE(SameBits(some, std::span(all).subspan(skipped * shape().out)))
        << rows << " rows";
  }
}

TEST_P(LinearTest, RowsDoNotDependOnLimitsCutsOrThreads) {
  constexpr int32_t kRows = 19;
  const Problem p(shape(), kRows, /*seed=*/31);
  SerialExecutor serial;
  Linear whole(p.weights, kRows, &serial, path());
  const std::vector<float> expected = Multiply(whole, p.x, kRows, kRows);
  std::vector<std::unique_ptr<Executor>> executors;
  for (int workers = 1; workers <= 8; ++workers) {
    executors.push_back(std::make_unique<BackwardExecutor>(workers));
  }
  executors.push_back(MakeParallelTestExecutor(2));
  for (const auto& executor : executors) {
    for (int32_t max_rows : {1, 2, 63, 64, 512}) {
      Linear cut(p.weights, max_rows, executor.get(), path());
      EXPECT_EQ(cut.path(), whole.path());
      for (int32_t rows : {1, 5, kRows}) {
        if (rows > max_rows) continue;
        EXPECT_TRUE(
            SameBits(Multiply(cut, p.x, rows, max_rows),
                     std::span(expected).first(size_t(rows) * shape().out)))
            << executor->num_workers() << " workers, " << rows << " rows of "
            << max_rows;
      }
    }
  }
}

TEST_P(LinearTest, WorksWithoutBias) {
  Problem p(shape(), 3, /*seed=*/41);
  SerialExecutor executor;
  p.weights.bias = {};
  Linear without(p.weights, 3, &executor, path());
  const std::vector<float> zeros(shape().out, 0.0f);
  p.weights.bias = zeros;
  Linear with_zeros(p.weights, 3, &executor, path());
  EXPECT_EQ(Multiply(without, p.x, 3, 3), Multiply(with_zeros, p.x, 3, 3));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LinearTest,
    testing::Combine(testing::ValuesIn(kShapes),
                     testing::Values(LinearPath::kFastest,
                                     LinearPath::kPortable)),
    [](const auto& test) {
      const Shape& shape = std::get<0>(test.param);
      return std::to_string(shape.in) + "to" + std::to_string(shape.out) +
             (std::get<1>(test.param) == LinearPath::kPortable ? "Portable"
                                                               : "Fastest");
    });

}  // namespace
}  // namespace folio
