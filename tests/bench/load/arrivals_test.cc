#include "bench/load/arrivals.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Process = Arrivals::Process;
using Cdf = std::function<double(double)>;

constexpr int32_t kCount = 20000;

Arrivals Poisson(double rate) {
  return {.process = Process::kPoisson, .rate = rate};
}

Arrivals Gamma(double rate, double burstiness) {
  return {.process = Process::kGamma, .rate = rate, .burstiness = burstiness};
}

// kCount gaps, in seconds.
std::vector<double> DrawGaps(const Arrivals& arrivals, uint64_t seed) {
  const std::vector<absl::Duration> times =
      DrawArrivals(arrivals, kCount + 1, seed);
  EXPECT_EQ(times[0], absl::ZeroDuration());
  std::vector<double> gaps;
  for (size_t i = 1; i < times.size(); ++i) {
    gaps.push_back(absl::ToDoubleSeconds(times[i] - times[i - 1]));
    EXPECT_GE(gaps.back(), 0);
  }
  return gaps;
}

double Mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double Variance(std::span<const double> values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size() - 1);
}

// The Kolmogorov-Smirnov statistic times sqrt(N): the largest distance between
// the distribution of `values` and `cdf`.
double KolmogorovSmirnov(std::vector<double> values, const Cdf& cdf) {
  std::ranges::sort(values);
  const auto count = static_cast<double>(values.size());
  double largest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = cdf(values[i]);
    largest = std::max({largest, expected - static_cast<double>(i) / count,
                        static_cast<double>(i + 1) / count - expected});
  }
  return largest * std::sqrt(count);
}

// What it exceeds with probability 2 * exp(-2 * 2.7^2) = 9e-7 for values that
// have the distribution.
constexpr double kSmirnovLimit = 2.7;

Cdf Exponential(double rate) {
  return [=](double x) { return 1 - std::exp(-rate * x); };
}

// Gamma distributions of mean 1 / rate whose CDF is elementary. Shape 1/2: half
// the square of a normal variable. Shape 2: the sum of two exponential ones.
Cdf GammaOfHalf(double rate) {
  return [=](double x) { return std::erf(std::sqrt(x * rate / 2)); };
}
Cdf GammaOfTwo(double rate) {
  return [=](double x) {
    return 1 - std::exp(-2 * rate * x) * (1 + 2 * rate * x);
  };
}

// Gamma(shape, scale) has mean shape * scale, variance shape * scale^2 and the
// fourth central moment (3 + 6 / shape) * variance^2, which gives the standard
// errors of the estimates of N values: sqrt(variance / N), and
// variance * sqrt((2 + 6 / shape) / N).
void ExpectMoments(std::span<const double> gaps, double rate, double shape) {
  const double mean = 1 / rate;
  const double variance = mean * mean / shape;
  EXPECT_NEAR(Mean(gaps), mean, 5 * std::sqrt(variance / kCount));
  EXPECT_NEAR(Variance(gaps), variance,
              5 * variance * std::sqrt((2 + 6 / shape) / kCount));
}

TEST(DrawArrivalsTest, PoissonGapsAreExponential) {
  for (const uint64_t seed : {1, 2, 3}) {
    for (const double rate : {0.25, 4.0, 1000.0}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", rate " << rate);
      const std::vector<double> gaps = DrawGaps(Poisson(rate), seed);
      ExpectMoments(gaps, rate, /*shape=*/1);
      EXPECT_LT(KolmogorovSmirnov(gaps, Exponential(rate)), kSmirnovLimit);
    }
  }
}

TEST(DrawArrivalsTest, GammaGapsHaveTheirMoments) {
  for (const double shape : {0.1, 0.25, 0.5, 0.99, 1.0, 1.5, 4.0, 100.0}) {
    SCOPED_TRACE(testing::Message() << "shape " << shape);
    ExpectMoments(DrawGaps(Gamma(8, shape), /*seed=*/1), /*rate=*/8, shape);
  }
}

TEST(DrawArrivalsTest, GammaGapsHaveTheirDistribution) {
  for (const uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    EXPECT_LT(KolmogorovSmirnov(DrawGaps(Gamma(8, 0.5), seed), GammaOfHalf(8)),
              kSmirnovLimit);
    EXPECT_LT(KolmogorovSmirnov(DrawGaps(Gamma(8, 1), seed), Exponential(8)),
              kSmirnovLimit);
    EXPECT_LT(KolmogorovSmirnov(DrawGaps(Gamma(8, 2), seed), GammaOfTwo(8)),
              kSmirnovLimit);
  }
  // The statistic does tell distributions of nearly the same shape apart.
  EXPECT_GT(KolmogorovSmirnov(DrawGaps(Gamma(8, 0.55), 1), GammaOfHalf(8)),
            kSmirnovLimit);
  EXPECT_GT(KolmogorovSmirnov(DrawGaps(Gamma(8, 1.1), 1), Exponential(8)),
            kSmirnovLimit);
  EXPECT_GT(KolmogorovSmirnov(DrawGaps(Gamma(8, 2.2), 1), GammaOfTwo(8)),
            kSmirnovLimit);
}

// The correlation of neighbours has a standard error of 1 / sqrt(N).
TEST(DrawArrivalsTest, GapsDoNotDependOnEachOther) {
  for (const Arrivals& arrivals : {Poisson(4), Gamma(4, 0.5), Gamma(4, 3)}) {
    SCOPED_TRACE(Describe(arrivals));
    const std::vector<double> gaps = DrawGaps(arrivals, /*seed=*/1);
    const double mean = Mean(gaps);
    double sum = 0;
    for (size_t i = 1; i < gaps.size(); ++i) {
      sum += (gaps[i] - mean) * (gaps[i - 1] - mean);
    }
    EXPECT_NEAR(sum / kCount / Variance(gaps), 0, 5 / std::sqrt(kCount));
  }
}

TEST(DrawArrivalsTest, ConstantAndAtOnce) {
  EXPECT_THAT(
      DrawArrivals({.process = Process::kConstant, .rate = 4}, 4, /*seed=*/1),
      ElementsAre(absl::ZeroDuration(), absl::Milliseconds(250),
                  absl::Milliseconds(500), absl::Milliseconds(750)));
  EXPECT_THAT(DrawArrivals({}, 3, /*seed=*/1), Each(absl::ZeroDuration()));
  EXPECT_TRUE(DrawArrivals(Poisson(1), 0, /*seed=*/1).empty());
}

TEST(DrawArrivalsTest, AreAFunctionOfTheSeed) {
  for (const Arrivals& arrivals : {Poisson(4), Gamma(4, 0.5), Gamma(4, 3)}) {
    SCOPED_TRACE(Describe(arrivals));
    const std::vector<absl::Duration> times = DrawArrivals(arrivals, 100, 7);
    EXPECT_EQ(DrawArrivals(arrivals, 100, 7), times);
    EXPECT_NE(DrawArrivals(arrivals, 100, 8), times);
    const std::span<const absl::Duration> first(times.data(), 10);
    EXPECT_THAT(DrawArrivals(arrivals, 10, 7),
                testing::ElementsAreArray(first));
  }
}

TEST(DescribeArrivalsTest, IsForPeople) {
  EXPECT_EQ(Describe(Arrivals()), "at once");
  EXPECT_EQ(Describe({.process = Process::kConstant, .rate = 0.5}),
            "at 0.5 a second (evenly)");
  EXPECT_EQ(Describe(Poisson(4)), "at 4 a second (Poisson)");
  EXPECT_EQ(Describe(Gamma(4, 0.25)), "at 4 a second (gamma, burstiness 0.25)");
}

}  // namespace
}  // namespace folio
