#include "bench/load/metrics.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/philox.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

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

// 1, ..., 200 ms, backwards: each percentile is another one.
TEST(SummariseTest, HasEachPercentile) {
  std::vector<absl::Duration> values;
  for (int i = 200; i >= 1; --i) values.push_back(Ms(i));
  const DurationSummary summary = Summarise(values);
  EXPECT_EQ(summary.count, 200);
  EXPECT_EQ(summary.mean, Ms(100.5));
  EXPECT_EQ(summary.p50, Ms(100));
  EXPECT_EQ(summary.p90, Ms(180));
  EXPECT_EQ(summary.p95, Ms(190));
  EXPECT_EQ(summary.p99, Ms(198));
  EXPECT_EQ(summary.max, Ms(200));
}

// Two that were served, one cut off, one refused and one never sent.
std::vector<RequestRecord> Records() {
  return {
      {.arrival = Ms(500),
       .sent = Ms(500),
       .samples = {{Ms(100), Ms(130), Ms(180)}},
       .end = Ms(200),
       .prompt_tokens = 8},
      {.arrival = Ms(1000),
       .sent = Ms(1000),
       .samples = {{Ms(300)}},
       .end = Ms(310),
       .prompt_tokens = 16,
       .cached_tokens = 5,
       .queue_duration = Ms(7)},
      {.arrival = Ms(1100),
       .sent = Ms(1100),
       .samples = {{Ms(50), Ms(1400)}},
       .end = Ms(1500),
       .status = absl::CancelledError("it was cancelled"),
       .end_was_asked_for = true,
       .prompt_tokens = 32,
       .queue_duration = Ms(9)},
      {.arrival = Ms(2000),
       .sent = Ms(2000),
       .end = Ms(1),
       .status = absl::ResourceExhaustedError("full"),
       .prompt_tokens = 64},
      {.arrival = Ms(2000), .status = absl::AbortedError("not sent")},
  };
}

TEST(MeasureTest, EqualsWhatIsComputedByHand) {
  const LoadMetrics metrics = Measure(Records());
  EXPECT_EQ(metrics.requests, 5);
  EXPECT_EQ(metrics.served, 2);
  EXPECT_EQ(metrics.ended_as_asked, 1);
  EXPECT_EQ(metrics.not_sent, 1);
  EXPECT_EQ(metrics.failed, 1);
  EXPECT_EQ(metrics.cached_input_tokens, 5);
  EXPECT_EQ(metrics.good, 2);  // Without limits, who is served is good.
  EXPECT_THAT(metrics.statuses,
              ElementsAre(Pair("ABORTED", 1), Pair("CANCELLED", 1),
                          Pair("OK", 2), Pair("RESOURCE_EXHAUSTED", 1)));
  EXPECT_EQ(metrics.input_tokens, 8 + 16 + 32);
  EXPECT_EQ(metrics.output_tokens, 6);
  EXPECT_EQ(metrics.ttft.count, 3);
  EXPECT_EQ(metrics.ttft.mean, Ms(150));  // Of 100, 300 and 50.
  EXPECT_EQ(metrics.ttft.p50, Ms(100));
  EXPECT_EQ(metrics.itl.count, 3);  // 30, 50 and 1350.
  EXPECT_EQ(metrics.itl.p50, Ms(50));
  EXPECT_EQ(metrics.itl.max, Ms(1350));
  EXPECT_EQ(metrics.tpot.count, 1);  // (200 - 100) / 2.
  EXPECT_EQ(metrics.tpot.max, Ms(50));
  EXPECT_EQ(metrics.e2e.count, 2);
  EXPECT_EQ(metrics.e2e.mean, Ms(255));  // Of 200 and 310.
  EXPECT_EQ(metrics.queue.count, 2);
  EXPECT_EQ(metrics.queue.mean, Ms(8));
  EXPECT_EQ(metrics.duration, Ms(2000));  // From 500 to 1100 + 1400.
  EXPECT_DOUBLE_EQ(metrics.output_tokens_per_second, 3.0);
  EXPECT_DOUBLE_EQ(metrics.input_tokens_per_second, 28.0);
  EXPECT_DOUBLE_EQ(metrics.total_tokens_per_second, 31.0);
  EXPECT_DOUBLE_EQ(metrics.requests_per_second, 1.0);
  EXPECT_DOUBLE_EQ(metrics.goodput, 1.0);
}

TEST(MeasureTest, OfNothing) {
  const LoadMetrics metrics =
      Measure(std::vector<RequestRecord>(2, {.arrival = Ms(5)}));
  EXPECT_EQ(metrics.requests, 2);
  EXPECT_EQ(metrics.output_tokens, 0);
  EXPECT_EQ(metrics.duration, absl::ZeroDuration());
  EXPECT_EQ(metrics.output_tokens_per_second, 0);
}

// Even if tokens all come at the time of the arrival.
TEST(MeasureTest, OfNoTime) {
  const LoadMetrics metrics =
      Measure(std::vector<RequestRecord>(1, {.samples = {{Ms(0)}}}));
  EXPECT_EQ(metrics.output_tokens, 1);
  EXPECT_EQ(metrics.output_tokens_per_second, 0);
  EXPECT_EQ(metrics.requests_per_second, 0);
}

// Two samples: 10, 40, 60 and 5, 45.
RequestRecord TwoSamples() {
  return {.samples = {{Ms(10), Ms(40), Ms(60)}, {Ms(5), Ms(45)}},
          .end = Ms(71)};
}

TEST(TimeToFirstTokenTest, IsTheFirstOfAnySample) {
  EXPECT_EQ(TimeToFirstToken(TwoSamples()), Ms(5));
  EXPECT_EQ(TimeToFirstToken({.samples = {{}, {Ms(3)}}}), Ms(3));
  EXPECT_EQ(TimeToFirstToken({.samples = {{}, {}}}), std::nullopt);
  EXPECT_EQ(TimeToFirstToken({}), std::nullopt);
  // Whether or not it came to its end.
  EXPECT_EQ(TimeToFirstToken(
                {.samples = {{Ms(3)}}, .status = absl::InternalError("")}),
            Ms(3));
}

TEST(GapsTest, AreWithinASample) {
  EXPECT_THAT(Gaps(TwoSamples()), ElementsAre(Ms(30), Ms(20), Ms(40)));
}

TEST(EndToEndTest, IsOfThoseThatWereServed) {
  EXPECT_EQ(EndToEnd(TwoSamples()), Ms(71));
  EXPECT_EQ(EndToEnd({.end = Ms(3), .status = absl::InternalError("")}),
            std::nullopt);
  EXPECT_EQ(EndToEnd({}), std::nullopt);
}

TEST(TimePerOutputTokenTest, DividesByTheStepsOfTheLongestSample) {
  EXPECT_EQ(TimePerOutputToken(TwoSamples()), Ms(66) / 2);
  EXPECT_EQ(TimePerOutputToken({.samples = {{Ms(5)}}, .end = Ms(9)}),
            std::nullopt);
  EXPECT_EQ(TimePerOutputToken({.end = Ms(9)}), std::nullopt);
  RequestRecord record = TwoSamples();
  // As they came, whatever the server says.
  record.told_output_tokens = 9;
  EXPECT_EQ(TimePerOutputToken(record), Ms(33));
  record.status = absl::CancelledError("");
  EXPECT_EQ(TimePerOutputToken(record), std::nullopt);
}

TEST(OutputTokensTest, AreAsToldOrAsTheyCame) {
  RequestRecord record = TwoSamples();
  EXPECT_EQ(OutputTokens(record), 5);
  record.told_output_tokens = 0;
  EXPECT_EQ(OutputTokens(record), 0);
  EXPECT_EQ(OutputTokens({}), 0);
}

// TTFT 5, gaps up to 40, TPOT 33, E2E 71.
TEST(IsGoodTest, KeepsEachLimit) {
  const RequestRecord record = TwoSamples();
  EXPECT_TRUE(IsGood(record, {}));
  EXPECT_TRUE(IsGood(
      record, {.ttft = Ms(5), .itl = Ms(40), .tpot = Ms(33), .e2e = Ms(71)}));
  EXPECT_FALSE(IsGood(record, {.ttft = Ms(4.9)}));
  EXPECT_FALSE(IsGood(record, {.itl = Ms(39.9)}));
  EXPECT_FALSE(IsGood(record, {.tpot = Ms(32.9)}));
  EXPECT_FALSE(IsGood(record, {.e2e = Ms(70.9)}));
}

TEST(IsGoodTest, OnlyIfItWasServed) {
  RequestRecord record = TwoSamples();
  record.status = absl::CancelledError("");
  record.end_was_asked_for = true;
  EXPECT_FALSE(IsGood(record, {}));
  // One token has no gap, which is no fault of it.
  EXPECT_TRUE(IsGood({.samples = {{Ms(5)}}, .end = Ms(6)},
                     {.itl = Ms(1), .tpot = Ms(1)}));
}

// So many gaps of 1 ms, and then `long_ones` of 10.
RequestRecord WithGaps(int short_ones, int long_ones) {
  RequestRecord record{.samples = {{Ms(0)}}};
  std::vector<absl::Duration>& times = record.samples[0];
  for (int i = 0; i < short_ones; ++i) times.push_back(times.back() + Ms(1));
  for (int i = 0; i < long_ones; ++i) times.push_back(times.back() + Ms(10));
  record.end = times.back();
  return record;
}

TEST(IsGoodTest, ALongGapCountsWhereverItIs) {
  const RequestRecord record{.samples = {{Ms(0), Ms(40), Ms(41)}},
                             .end = Ms(41)};
  EXPECT_FALSE(IsGood(record, {.itl = Ms(39)}));
  EXPECT_TRUE(IsGood(record, {.itl = Ms(40)}));
}

TEST(IsGoodTest, OneGapOfAHundredMayBeLonger) {
  EXPECT_TRUE(IsGood(WithGaps(99, 1), {.itl = Ms(5)}));
  EXPECT_FALSE(IsGood(WithGaps(98, 1), {.itl = Ms(5)}));
  EXPECT_TRUE(IsGood(WithGaps(198, 2), {.itl = Ms(5)}));
  EXPECT_FALSE(IsGood(WithGaps(197, 3), {.itl = Ms(5)}));
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
