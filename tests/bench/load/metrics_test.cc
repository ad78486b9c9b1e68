#include "bench/load/metrics.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/philox.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

absl::Duration Ms(double ms) { return absl::Milliseconds(ms); }

TEST(PercentileTest, IsTheNearestRank) {
  // The example of "Percentile" in Wikipedia: ranks 1, 2, 2, 3, 5 of five.
  const std::vector<absl::Duration> values = {Ms(15), Ms(20), Ms(35), Ms(40),
                                              Ms(50)};
  EXPECT_EQ(Percentile(values, 5), Ms(15));
  EXPECT_EQ(Percentile(values, 30), Ms(20));
  EXPECT_EQ(Percentile(values, 40), Ms(20));
  EXPECT_EQ(Percentile(values, 50), Ms(35));
  EXPECT_EQ(Percentile(values, 100), Ms(50));
  EXPECT_EQ(Percentile(values, 0), Ms(15));
  EXPECT_EQ(Percentile({}, 50), absl::ZeroDuration());
}

// The definition, by counting.
TEST(PercentileTest, IsTheLeastThatEnoughDoNotExceed) {
  for (int size = 1; size <= 230; ++size) {
    std::vector<absl::Duration> values;
    for (int i = 0; i < size; ++i) {
      values.push_back(Ms(static_cast<int>(UniformDouble(7, size, i) * 40)));
    }
    std::ranges::sort(values);
    for (const int percent : {1, 7, 50, 90, 95, 99, 100}) {
      const absl::Duration found = Percentile(values, percent);
      const auto enough = [&](absl::Duration value) {
        return std::ranges::count_if(
                   values, [&](absl::Duration v) { return v <= value; }) *
                   100 >=
               int64_t{percent} * size;
      };
      EXPECT_EQ(found, *std::ranges::find_if(values, enough))
          << percent << "% of " << size;
    }
  }
}

TEST(SummariseTest, OfAnyOrder) {
  const DurationSummary summary = Summarise({Ms(3), Ms(1), Ms(2), Ms(10)});
  EXPECT_EQ(summary.count, 4);
  EXPECT_EQ(summary.mean, Ms(4));
  EXPECT_EQ(summary.p50, Ms(2));
  EXPECT_EQ(summary.p90, Ms(10));
  EXPECT_EQ(summary.p95, Ms(10));
  EXPECT_EQ(summary.p99, Ms(10));
  EXPECT_EQ(summary.max, Ms(10));
  EXPECT_EQ(Summarise({}).count, 0);
  EXPECT_EQ(Summarise({}).max, absl::ZeroDuration());
}

// Two that were served, one cut off and one refused.
std::vector<RequestRecord> Records() {
  return {
      {.arrival = Ms(500), .token_times = {Ms(100), Ms(130), Ms(180)}},
      {.arrival = Ms(1000), .token_times = {Ms(300)}},
      {.arrival = Ms(1100),
       .token_times = {Ms(50), Ms(1400)},
       .status = absl::CancelledError("it was cancelled")},
      {.arrival = Ms(2000), .status = absl::ResourceExhaustedError("full")},
  };
}

TEST(MeasureTest, EqualsWhatIsComputedByHand) {
  const LoadMetrics metrics = Measure(Records());
  EXPECT_EQ(metrics.requests, 4);
  EXPECT_EQ(metrics.failed, 2);
  EXPECT_EQ(metrics.output_tokens, 6);
  EXPECT_EQ(metrics.ttft.count, 3);
  EXPECT_EQ(metrics.ttft.mean, Ms(150));  // Of 100, 300 and 50.
  EXPECT_EQ(metrics.ttft.p50, Ms(100));
  EXPECT_EQ(metrics.itl.count, 3);  // 30, 50 and 1350.
  EXPECT_EQ(metrics.itl.p50, Ms(50));
  EXPECT_EQ(metrics.itl.max, Ms(1350));
  EXPECT_EQ(metrics.duration, Ms(2000));  // From 500 to 1100 + 1400.
  EXPECT_DOUBLE_EQ(metrics.output_tokens_per_second, 3.0);
}

TEST(MeasureTest, OfNothing) {
  const LoadMetrics metrics =
      Measure(std::vector<RequestRecord>(2, {.arrival = Ms(5)}));
  EXPECT_EQ(metrics.requests, 2);
  EXPECT_EQ(metrics.output_tokens, 0);
  EXPECT_EQ(metrics.duration, absl::ZeroDuration());
  EXPECT_EQ(metrics.output_tokens_per_second, 0);
}

TEST(GapsTest, BetweenNeighbours) {
  const std::vector<RequestRecord> records = Records();
  EXPECT_THAT(Gaps(records[0]), ElementsAre(Ms(30), Ms(50)));
  EXPECT_THAT(Gaps(records[1]), IsEmpty());
  EXPECT_THAT(Gaps(records[3]), IsEmpty());
}

TEST(FirstFailureTest, NamesTheRequest) {
  EXPECT_EQ(FirstFailure(Records()),
            absl::CancelledError("request 2: it was cancelled"));
  const std::vector<RequestRecord> records = Records();
  EXPECT_TRUE(FirstFailure(std::span(records).first(2)).ok());
}

}  // namespace
}  // namespace folio
