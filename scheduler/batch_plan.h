// The scheduler's decision for one step.

#ifndef SCHEDULER_BATCH_PLAN_H_
#define SCHEDULER_BATCH_PLAN_H_

#include <cstdint>
#include <vector>

#include "runtime/base/types.h"
#include "scheduler/batch_report.h"

namespace folio {

// One sequence's part of a step: its next `count` tokens.
struct PlannedSequence {
  SequenceId id;
  int32_t count;      // >= 1
  bool admitted;      // It comes from the waiting queue in this step.
  int32_t cached;     // Tokens that it takes over from cached pages first.
  int32_t new_pages;  // That it takes, a copy of a shared one included.
  bool copies;        // Whether it has such a copy made.
};

// Ids and counts only; nothing has happened until Scheduler::Apply.
struct BatchPlan {
  std::vector<RequestId> expired;  // Their deadline has passed.
  std::vector<SequenceId> preempted;
  std::vector<PlannedSequence> sequences;  // Decodes, prefill chunks, admitted.
  int32_t num_tokens = 0;                  // Sum of the counts.
  WaitReason wait_reason = WaitReason::kNone;

  void Clear() {
    expired.clear();
    preempted.clear();
    sequences.clear();
    num_tokens = 0;
    wait_reason = WaitReason::kNone;
  }
};

}  // namespace folio

#endif  // SCHEDULER_BATCH_PLAN_H_
