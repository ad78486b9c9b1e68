#include "bench/load/sweep.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(ParseSweepTest, OfRates) {
  const auto sweep = ParseSweep("rate=1:8:3");
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_EQ(sweep->variable, Sweep::Variable::kRate);
  EXPECT_THAT(sweep->values, ElementsAre(1, 4, 7));
}

TEST(ParseSweepTest, OfConcurrencies) {
  const auto sweep = ParseSweep("concurrency=4:12:4");
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_EQ(sweep->variable, Sweep::Variable::kConcurrency);
  EXPECT_THAT(sweep->values, ElementsAre(4, 8, 12));
}

// 0.1 + 2 * 0.1 is more than 0.3 in floating point, and (0.3 - 0.1) / 0.1 less
// than 2.
TEST(ParseSweepTest, HasItsLastValueInSpiteOfRounding) {
  const auto sweep = ParseSweep("rate=0.1:0.3:0.1");
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_THAT(sweep->values,
              ElementsAre(DoubleEq(0.1), DoubleEq(0.2), DoubleEq(0.3)));
}

TEST(ParseSweepTest, OfOneValue) {
  const auto sweep = ParseSweep("rate=2.5:2.5:1");
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_THAT(sweep->values, ElementsAre(2.5));
}

TEST(ParseSweepTest, HasAtMostAHundredValues) {
  const auto sweep = ParseSweep("rate=1:100:1");
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_THAT(sweep->values, SizeIs(100));
  EXPECT_EQ(sweep->values.back(), 100);
  EXPECT_FALSE(ParseSweep("rate=1:101:1").ok());
  // (110.1 - 0.1) / 1.1 is a bit less than 100, but the value is one more.
  EXPECT_FALSE(ParseSweep("rate=0.1:110.1:1.1").ok());
}

TEST(ParseSweepTest, RefusesWhatIsNone) {
  for (const std::string text : {"",
                                 "rate",
                                 "rate=",
                                 "rate=1",
                                 "rate=1:2",
                                 "rate=1:2:3:4",
                                 "rate=1:2:",
                                 "rate=a:2:1",
                                 "rate=1:b:1",
                                 "rate=1:2:c",
                                 "rate=0:2:1",
                                 "rate=-1:2:1",
                                 "rate=2:1:1",
                                 "rate=1:2:0",
                                 "rate=1:2:-1",
                                 "rate=nan:2:1",
                                 "rate=1:nan:1",
                                 "rate=1:2:nan",
                                 "rate=inf:inf:1",
                                 "rate=1:inf:1",
                                 "rate=1:2:inf",
                                 "rate=1:2:1e-300",
                                 "speed=1:2:1",
                                 "=1:2:1",
                                 "1:2:1",
                                 "concurrency=1.5:2:1",
                                 "concurrency=1:2.5:1",
                                 "concurrency=1:2:0.5",
                                 "concurrency=1:1000001:1000000"}) {
    const auto sweep = ParseSweep(text);
    EXPECT_EQ(sweep.status().code(), absl::StatusCode::kInvalidArgument)
        << text;
    EXPECT_THAT(sweep.status().message(),
                AllOf(HasSubstr("'" + text + "'"), HasSubstr("FROM:TO:STEP")));
  }
}

TEST(ParseLimitsTest, OfAll) {
  const auto limits = ParseLimits("e2e:5000,ttft:200,tpot:0.5,itl:1e9");
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->ttft, absl::Milliseconds(200));
  EXPECT_EQ(limits->itl, absl::Seconds(1000000));
  EXPECT_EQ(limits->tpot, absl::Microseconds(500));
  EXPECT_EQ(limits->e2e, absl::Seconds(5));
}

TEST(ParseLimitsTest, OfSome) {
  const auto limits = ParseLimits("itl:50");
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->ttft, std::nullopt);
  EXPECT_EQ(limits->itl, absl::Milliseconds(50));
  EXPECT_EQ(limits->tpot, std::nullopt);
  EXPECT_EQ(limits->e2e, std::nullopt);
}

TEST(ParseLimitsTest, RefusesWhatIsNone) {
  for (const std::string bad :
       {"", "ttft", "ttft:", "ttft:x", "ttft:0", "ttft:-1", "ttft:nan",
        "ttft:inf", "ttft:1e10", "queue:5", "TTFT:5", "ttft:1:2", "ttft=5"}) {
    for (const std::string& text : {bad, "itl:50," + bad}) {
      const auto limits = ParseLimits(text);
      EXPECT_EQ(limits.status().code(), absl::StatusCode::kInvalidArgument)
          << text;
      EXPECT_THAT(limits.status().message(), HasSubstr("'" + bad + "'"));
    }
  }
  EXPECT_FALSE(ParseLimits("ttft:5,itl:3,ttft:6").ok());
}

TEST(MeetsLimitsTest, CountsTheGoodOnes) {
  LoadMetrics metrics;
  metrics.requests = 200;
  metrics.good = 198;
  EXPECT_TRUE(MeetsLimits(metrics, 0.99));
  EXPECT_FALSE(MeetsLimits(metrics, 1));
  metrics.good = 197;
  EXPECT_FALSE(MeetsLimits(metrics, 0.99));
  EXPECT_TRUE(MeetsLimits(metrics, 0));
  metrics.good = 200;
  EXPECT_TRUE(MeetsLimits(metrics, 1));
  // 0.55 * 100 is more than 55 in floating point.
  metrics.requests = 100;
  metrics.good = 55;
  EXPECT_TRUE(MeetsLimits(metrics, 0.55));
}

}  // namespace
}  // namespace folio
