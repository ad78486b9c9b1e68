// One step as clients see it.

#ifndef SCHEDULER_BATCH_REPORT_H_
#define SCHEDULER_BATCH_REPORT_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "cache/memory_report.h"

namespace folio {

// Why the request that is next in the queue was not admitted.
enum class WaitReason {
  kNone,       // Nobody waits.
  kTokens,     // The step's token budget was spent.
  kSequences,  // As many sequences run as may.
  kPages,      // Too few pages for its tokens.
  kWatermark,  // There are, but those that run may need them to grow.
  kPolicy,     // A running sequence was preempted in this step.
};

// Taken when the forward pass has written its K/V and before anything that
// finished in the step gives its pages back: the fullest moment of the step.
struct BatchReport {
  int64_t step = 0;  // Counted from 1.
  absl::Time start;
  absl::Duration duration;  // The whole step, Plan to events.
  // Of it: Plan and Apply; inside the model; inside the sampler; Commit and the
  // text of its events. What is left went into the model's input.
  absl::Duration plan_duration;
  absl::Duration forward_duration;
  absl::Duration sample_duration;
  absl::Duration commit_duration;

  // Of sequences that had more than one to compute, and of those that had one.
  int32_t prefill_tokens = 0;
  int32_t decode_tokens = 0;
  // Of the prompts that were complete with this step, all tokens, those found
  // in the prefix cache, too. Each request's prompt counts once.
  int32_t prompt_tokens = 0;
  int32_t generated_tokens = 0;  // As in usage.
  // Of each request that got its first token, the time since its arrival.
  std::vector<absl::Duration> times_to_first_token;
  int32_t sequences_running = 0;
  int32_t sequences_waiting = 0;
  WaitReason wait_reason = WaitReason::kNone;

  // In this step.
  int32_t sequences_preempted = 0;
  int32_t prefix_query_tokens = 0;  // Looked up when a sequence was admitted,
  int32_t prefix_hit_tokens = 0;    // and of them, found in the prefix cache.
  int32_t pages_evicted = 0;
  int32_t pages_copied = 0;  // Because a fork wrote to a shared one.

  // What the cost model expected the step to take, from the Commit before it
  // (or its own Apply, when nothing was live) to its own, and what it took.
  // Zero: not known.
  absl::Duration predicted_duration;
  absl::Duration commit_interval;

  MemoryReport memory;
};

}  // namespace folio

#endif  // SCHEDULER_BATCH_REPORT_H_
