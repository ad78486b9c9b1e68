// Simulated traffic on a scripted model: what comes out is what must come out,
// whatever happens in between.

#include "tests/simulation/engine_simulation.h"

#include <iostream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/sanitized.h"

namespace folio {
namespace {

constexpr int64_t kStepsPerSeed = 2000;
constexpr int kSeedsPerShard = kSanitized ? 50 : 500;

const char* const kEveryKind[] = {
    "cancelled: after its end",
    "cancelled: decoding",
    "cancelled: in prefill",
    "cancelled: in the inbox",
    "cancelled: preempted",
    "cancelled: waiting",
    "deadline: before a token",
    "deadline: while running",
    "failed: not a number",
    "finished after preemption",
    "finished: length",
    "finished: stop",
    "max_tokens 0",
    "preemption",
    "prompt logprobs",
    "refused: full",
    "refused: invalid",
    "step: pages have left the window",
    "step: prefill and decode mixed",
};

// Four shards of a million steps, so that ctest can run them side by side.
class EngineSimulationTest : public testing::TestWithParam<int> {};

TEST_P(EngineSimulationTest, EveryRequestGetsWhatItWouldGetAlone) {
  EventCounts counts;
  int64_t num_steps = 0;
  for (int i = 0; i < kSeedsPerShard; ++i) {
    const uint64_t seed = GetParam() * kSeedsPerShard + i;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    EngineSimulation simulation(seed, &counts);
    simulation.Run(kStepsPerSeed);
    num_steps += simulation.num_steps();
  }
  std::cout << num_steps << " steps\n";
  for (const auto& [event, count] : counts) {
    std::cout << "  " << event << ": " << count << "\n";
  }
  EXPECT_GE(num_steps, kSeedsPerShard * kStepsPerSeed);
  for (const char* kind : kEveryKind) {
    EXPECT_GT(counts[kind], 0) << kind << " never occurred";
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, EngineSimulationTest, testing::Range(0, 4));

TEST(EngineSimulationDeterminismTest, SameSeedGivesSameTrace) {
  EventCounts counts;
  uint64_t previous = 0;
  for (uint64_t seed = 1000; seed < 1020; ++seed) {
    EngineSimulation first(seed, &counts);
    EngineSimulation second(seed, &counts);
    first.Run(500);
    second.Run(500);
    EXPECT_EQ(first.trace(), second.trace()) << "seed " << seed;
    EXPECT_NE(first.trace(), previous) << "the seed has no effect";
    previous = first.trace();
  }
}

}  // namespace
}  // namespace folio
