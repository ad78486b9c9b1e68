// A target for the gaps between tokens, on steps that take the time that their
// work is worth.

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "cache/kv_cache.h"
#include "gtest/gtest.h"
#include "runtime/base/philox.h"
#include "scheduler/scheduler.h"

namespace folio {
namespace {

constexpr absl::Duration kTarget = absl::Milliseconds(50);
constexpr int32_t kContext = 8192;

// About what a model of 135 M parameters takes on two cores.
absl::Duration TrueDuration(const StepWork& work) {
  return absl::Milliseconds(8) + absl::Microseconds(800) * work.tokens +
         absl::Nanoseconds(600) * work.context_read +
         absl::Nanoseconds(30) * work.chunk_pairs;
}

class TargetItlTest : public testing::Test {
 protected:
  TargetItlTest()
      : layout_({.num_layers = 1, .num_kv_heads = 1, .head_dim = 1}, 16),
        cache_(layout_, /*num_pages=*/4096, {.prefix_cache = false}),
        scheduler_({.max_batch_tokens = 4096,
                    .max_batch_sequences = 16,
                    .target_itl = kTarget},
                   kContext, 4096 * layout_.page_bytes(), &cache_) {}

  void Add(int32_t prompt_tokens, int32_t max_tokens) {
    auto request = std::make_shared<Request>();
    request->id = RequestId{next_request_++};
    request->prompt.assign(prompt_tokens, 0);
    request->max_tokens = max_tokens;
    scheduler_.Add(std::move(request));
  }

  // Takes a step that takes `noise` times what it is worth, which is returned.
  absl::Duration Step(double noise = 1) {
    events_.Clear();
    scheduler_.Plan(now_, plan_);
    scheduler_.Apply(plan_, now_, applied_, events_);
    result_.sequences.Clear();
    for (const AppliedSequence& applied : applied_.sequences) {
      SequenceResult& entry = result_.sequences.Append();
      entry.id = applied.id;
      if (scheduler_.sequence(applied.id).SamplesAfter(applied.count)) {
        entry.sampled.tokens.push_back(1);
      }
    }
    const absl::Duration duration = TrueDuration(applied_.work);
    now_ += duration * noise;
    scheduler_.Commit(applied_, result_, now_, NeverStops, events_, report_);
    return duration;
  }

  const KvLayout layout_;
  KvCache cache_;
  Scheduler scheduler_;
  absl::Time now_ = absl::UnixEpoch();
  uint64_t next_request_ = 1;
  BatchPlan plan_;
  AppliedPlan applied_;
  StepResult result_;
  TokenEvents events_;
  BatchReport report_;
};

// From steps that decode, the cost model can't tell what a token of a chunk
// costs: it has to find out little by little.
TEST_F(TargetItlTest, HoldsForTheFirstLongPromptAfterDecodesAlone) {
  for (int i = 0; i < 8; ++i) Add(/*prompt_tokens=*/1, /*max_tokens=*/2000);
  for (int step = 0; step < 200; ++step) Step();
  Add(/*prompt_tokens=*/3000, /*max_tokens=*/1);
  absl::Duration longest;
  absl::Duration sum;
  int steps = 0;
  do {
    const absl::Duration duration = Step();
    longest = std::max(longest, duration);
    sum += duration;
    ++steps;
  } while (report_.prefill_tokens > 0);
  // A chunk of 32 beside 8 decodes takes 40 ms. From then on a step has at most
  // once and a half the tokens of one that kept the target.
  EXPECT_LE(longest, 1.5 * kTarget);
  // And it makes use of the target: had each chunk the least size, a step would
  // take 27 ms.
  EXPECT_GE(sum / steps, 0.8 * kTarget);
}

TEST_F(TargetItlTest, HoldsOnceChunksAreKnown) {
  for (int i = 0; i < 8; ++i) Add(/*prompt_tokens=*/1, /*max_tokens=*/4000);
  Step();
  Add(/*prompt_tokens=*/3000, /*max_tokens=*/1);
  // Long enough for the model to forget, were it to.
  for (int step = 0; step < 2000; ++step) Step();
  Add(/*prompt_tokens=*/3000, /*max_tokens=*/1);
  do {
    // Both the model and the truth are linear. What is left is that decodes
    // have longer contexts than while the first prompt was computed.
    EXPECT_LE(Step(), 1.1 * kTarget);
  } while (report_.prefill_tokens > 0);
}

// Other programs make steps slower by as much as they like.
TEST_F(TargetItlTest, NoiseMakesNoGiantSteps) {
  constexpr uint64_t kSeed = 11;
  for (int i = 0; i < 4; ++i) Add(/*prompt_tokens=*/500, /*max_tokens=*/7000);
  Step();  // Nobody decodes yet: all prompts at once.
  absl::Duration longest;
  absl::Duration sum;
  int steps_with_chunks = 0;
  for (uint64_t step = 0; step < 6000; ++step) {
    if (step % 300 == 299) Add(/*prompt_tokens=*/2000, /*max_tokens=*/1);
    const double u = UniformDouble(kSeed, /*stream=*/0, step);
    const absl::Duration worth = Step(u < 0.2 ? 1 + 15 * u : 1);  // Up to 4.
    longest = std::max(longest, worth);
    if (report_.prefill_tokens == 0) continue;
    ++steps_with_chunks;
    sum += worth;
  }
  EXPECT_LE(longest, 2 * kTarget);
  ASSERT_GT(steps_with_chunks, 20 * 2000 / 100);
  EXPECT_GE(sum / steps_with_chunks, kTarget / 2);
}

}  // namespace
}  // namespace folio
