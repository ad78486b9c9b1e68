#include "scheduler/cost_model.h"

#include <cmath>

#include "gtest/gtest.h"
#include "runtime/base/philox.h"

namespace folio {
namespace {

TEST(StepWorkTest, CountsWhatIsReadAndMultiplied) {
  StepWork work;
  work.Add(/*num_computed=*/100, /*count=*/1);  // Reads 101.
  work.Add(/*num_computed=*/10, /*count=*/3);   // 11 + 12 + 13 pairs.
  EXPECT_EQ(work.sequences, 2);
  EXPECT_EQ(work.tokens, 4);
  EXPECT_EQ(work.context_read, 101);
  EXPECT_EQ(work.chunk_pairs, 36);
}

// Steps of random work, whose durations follow from known costs.
StepWork RandomWork(uint64_t step) {
  const auto draw = [&](uint64_t stream, int most) {
    return static_cast<int32_t>(UniformDouble(3, stream, step) * most);
  };
  StepWork work;
  const int32_t decodes = 1 + draw(1, 31);
  for (int32_t i = 0; i < decodes; ++i) work.Add(draw(2, 2000), 1);
  if (draw(3, 2) == 0) work.Add(draw(4, 1000), 1 + draw(5, 400));
  return work;
}

absl::Duration TrueDuration(const StepWork& work) {
  return absl::Microseconds(2000 + 40 * work.sequences + 500 * work.tokens) +
         absl::Nanoseconds(600 * work.context_read) +
         absl::Nanoseconds(30 * work.chunk_pairs);
}

TEST(CostModelTest, LearnsLinearCosts) {
  CostModel model;
  EXPECT_FALSE(model.IsReady());
  for (uint64_t step = 0; step < 400; ++step) {
    const StepWork work = RandomWork(step);
    model.Observe(work, TrueDuration(work));
  }
  EXPECT_TRUE(model.IsReady());
  for (uint64_t step = 1000; step < 1050; ++step) {
    const StepWork work = RandomWork(step);
    EXPECT_NEAR(absl::FDivDuration(model.Predict(work), TrueDuration(work)),
                1.0, 0.02);
  }
}

TEST(CostModelTest, KnowsHowFarItsPredictionsReach) {
  CostModel model;
  EXPECT_EQ(model.MaxPredictableTokens(), 0);
  StepWork work;
  for (int i = 0; i < 8; ++i) work.Add(/*num_computed=*/100, /*count=*/1);
  model.Observe(work, TrueDuration(work));
  EXPECT_EQ(model.MaxPredictableTokens(), 12);
  work.Add(/*num_computed=*/0, /*count=*/32);
  model.Observe(work, TrueDuration(work));
  EXPECT_EQ(model.MaxPredictableTokens(), 60);
  // 40, less a 32nd, rounded up.
  StepWork single;
  single.Add(/*num_computed=*/0, /*count=*/1);
  model.Observe(single, TrueDuration(single));
  EXPECT_EQ(model.MaxPredictableTokens(), 57);
  for (int i = 0; i < 200; ++i) model.Observe(single, TrueDuration(single));
  EXPECT_EQ(model.MaxPredictableTokens(), 1);
}

TEST(CostModelTest, FollowsAMachineThatBecomesSlower) {
  CostModel model;
  for (uint64_t step = 0; step < 3000; ++step) {
    const StepWork work = RandomWork(step);
    model.Observe(work, TrueDuration(work) * (step < 1000 ? 1 : 3));
  }
  for (uint64_t step = 5000; step < 5020; ++step) {
    const StepWork work = RandomWork(step);
    EXPECT_NEAR(absl::FDivDuration(model.Predict(work), TrueDuration(work)),
                3.0, 0.15);
  }
}

// Every step the same, for a long time: nothing grows without end.
TEST(CostModelTest, StaysFiniteWithoutNewInformation) {
  CostModel model;
  StepWork work;
  for (int i = 0; i < 8; ++i) work.Add(100, 1);
  for (int step = 0; step < 100000; ++step) {
    model.Observe(work, absl::Milliseconds(10));
  }
  EXPECT_NEAR(absl::ToDoubleMilliseconds(model.Predict(work)), 10, 0.01);
  work.Add(0, 64);
  EXPECT_TRUE(std::isfinite(absl::ToDoubleMilliseconds(model.Predict(work))));
  model.Observe(work, absl::Milliseconds(40));
  EXPECT_GE(model.Predict(work), absl::ZeroDuration());
}

TEST(CostModelTest, StepsThatTakeNoTimeAreHarmless) {
  CostModel model;
  for (uint64_t step = 0; step < 100; ++step) {
    model.Observe(RandomWork(step), absl::ZeroDuration());
  }
  EXPECT_LT(model.Predict(RandomWork(7)), absl::Milliseconds(1));
}

}  // namespace
}  // namespace folio
