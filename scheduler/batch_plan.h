// The scheduler's decision for one step.

#ifndef SCHEDULER_BATCH_PLAN_H_
#define SCHEDULER_BATCH_PLAN_H_

#include <cstdint>
#include <vector>

#include "runtime/base/types.h"

namespace folio {

// One sequence's part of a step: its next `count` tokens.
struct PlannedSequence {
  SequenceId id;
  int32_t count;  // >= 1
  bool admitted;  // It comes from the waiting queue in this step.
};

// Ids and counts only; nothing has happened until Scheduler::Apply.
struct BatchPlan {
  std::vector<SequenceId> expired;    // Their deadline has passed.
  std::vector<SequenceId> preempted;  // In the order they go back to the front.
  std::vector<PlannedSequence> sequences;  // Decodes, prefill chunks, admitted.
  int32_t num_tokens = 0;                  // Sum of the counts.

  void Clear() {
    expired.clear();
    preempted.clear();
    sequences.clear();
    num_tokens = 0;
  }
};

}  // namespace folio

#endif  // SCHEDULER_BATCH_PLAN_H_
