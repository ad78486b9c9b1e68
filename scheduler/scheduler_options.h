// What an operator decides about scheduling.

#ifndef SCHEDULER_SCHEDULER_OPTIONS_H_
#define SCHEDULER_SCHEDULER_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace folio {

// What policy "fair" counts a token for (see fair_policy.cc).
inline constexpr int64_t kFairPromptCost = 1;
inline constexpr int64_t kFairSampledCost = 2;

struct SchedulerOptions {
  // Tokens and sequences that one step computes at most.
  int32_t max_batch_tokens = 512;
  int32_t max_batch_sequences = 32;

  // Who goes first: a row of SchedulingPolicies().
  std::string policy = "fcfs";
  // With policy "priority": the time that makes up for one class.
  absl::Duration priority_ageing = absl::Seconds(10);

  // While others decode, prefill gets at most this share of max_batch_tokens,
  // in (0, 1],
  double max_prefill_share = 1.0;
  // and as much as keeps the step, by the cost model, below this.
  std::optional<absl::Duration> target_itl;

  // Nobody is admitted unless so many pages for each running sequence stay
  // available for what they will generate (or all that it can take, if that is
  // fewer).
  int32_t watermark_pages = 1;

  // Give back a sequence's pages after each sample, so that every token costs
  // the whole sequence again: what generating without a cache costs.
  bool recompute_always = false;

  // max_batch_tokens >= max_batch_sequences >= 1, so that no decoding sequence
  // ever waits for the token budget and a prefill always gets some of it.
  absl::Status Validate() const;
};

}  // namespace folio

#endif  // SCHEDULER_SCHEDULER_OPTIONS_H_
