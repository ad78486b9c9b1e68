// Simulated traffic on a scripted model: what comes out is what must come out,
// whatever happens in between.

#include "tests/simulation/engine_simulation.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/sanitized.h"

namespace folio {
namespace {

constexpr int64_t kStepsPerSeed = 2000;
constexpr int kShards = 4;

// A minute in all, or as many as FOLIO_SIMULATION_SEEDS says.
int SeedsPerShard() {
  const char* const seeds = std::getenv("FOLIO_SIMULATION_SEEDS");
  if (seeds != nullptr) return std::max(std::atoi(seeds) / kShards, 1);
  return kSanitized ? 50 : 2000;
}

const char* const kEveryKind[] = {
    "cancelled: after its end",
    "cancelled: and sent again at once",
    "cancelled: decoding",
    "cancelled: in prefill",
    "cancelled: in the inbox",
    "cancelled: preempted",
    "cancelled: waiting",
    "deadline: before a token",
    "deadline: while running",
    "failed: not a number",
    "finished after preemption",
    "finished with cached tokens",
    "finished: length",
    "finished: stop",
    "fork: pages copied",
    "max_tokens 0",
    "policy: fair",
    "policy: fcfs",
    "policy: priority",
    "preemption",
    "prefix cache flushed",
    "prefix: pages evicted",
    "prefix: tokens found",
    "prompt logprobs",
    "refused: full",
    "refused: invalid",
    "refused: requests of a tenant",
    "refused: tokens that wait",
    "several samples",
    "step: pages are cached",
    "step: pages are shared",
    "step: pages have left the window",
    "step: prefill and decode mixed",
    "step: two tenants wait",
    "waits for: pages",
    "waits for: policy",
    "waits for: sequences",
    "waits for: tokens",
    "waits for: watermark",
};

// In shards, so that ctest can run them side by side.
class EngineSimulationTest : public testing::TestWithParam<int> {};

TEST_P(EngineSimulationTest, EveryRequestGetsWhatItWouldGetAlone) {
  EventCounts counts;
  int64_t num_steps = 0;
  const int num_seeds = SeedsPerShard();
  for (int i = 0; i < num_seeds; ++i) {
    const uint64_t seed = GetParam() * num_seeds + i;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    EngineSimulation simulation(seed, &counts);
    simulation.Run(kStepsPerSeed);
    num_steps += simulation.num_steps();
  }
  std::cout << num_steps << " steps\n";
  for (const auto& [event, count] : counts) {
    std::cout << "  " << event << ": " << count << "\n";
  }
  EXPECT_GE(num_steps, num_seeds * kStepsPerSeed);
  for (const char* kind : kEveryKind) {
    EXPECT_GT(counts[kind], 0) << kind << " never occurred";
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, EngineSimulationTest,
                         testing::Range(0, kShards));

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
