// A plan that has been applied: what the forward pass is made of.

#ifndef SCHEDULER_APPLIED_PLAN_H_
#define SCHEDULER_APPLIED_PLAN_H_

#include <cstdint>
#include <vector>

#include "cache/kv_cache.h"
#include "runtime/base/types.h"
#include "scheduler/batch_report.h"
#include "scheduler/cost_model.h"

namespace folio {

// One sequence's part of a step.
struct AppliedSequence {
  SequenceId id;
  // Its next `count` tokens are computed. 0: it has just been forked from the
  // nearest sequence before it that computes something, and samples the same
  // row of logits as that one.
  int32_t count;
};

struct AppliedPlan {
  std::vector<AppliedSequence> sequences;
  // Pages to be copied, in this order, before K/V is written.
  std::vector<PageCopy> copies;
  int32_t num_preempted = 0;
  WaitReason wait_reason = WaitReason::kNone;
  StepWork work;  // For the cost model.

  void Clear() {
    sequences.clear();
    copies.clear();
    num_preempted = 0;
    wait_reason = WaitReason::kNone;
    work = StepWork();
  }
};

}  // namespace folio

#endif  // SCHEDULER_APPLIED_PLAN_H_
