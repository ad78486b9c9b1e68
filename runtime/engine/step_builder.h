// From the applied plan to the arrays of a forward pass.

#ifndef RUNTIME_ENGINE_STEP_BUILDER_H_
#define RUNTIME_ENGINE_STEP_BUILDER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/page_table.h"
#include "runtime/base/types.h"
#include "runtime/model/step_input.h"
#include "scheduler/applied_plan.h"
#include "scheduler/scheduler.h"

namespace folio {

// Owns the arrays behind a StepInput and keeps their memory between steps.
class StepBuilder {
 public:
  // Flattens a plan that has been applied. O(tokens of the plan). Both results
  // are valid until the next Build or until the scheduler changes.
  const StepInput& Build(const AppliedPlan& plan, const Scheduler& scheduler);

  // The sequences of the plan, in its order.
  std::span<const Sequence* const> sequences() const { return sequences_; }

 private:
  void AddRows(const Sequence& sequence, int32_t count, const KvCache& cache);
  void AddLogitsRows(const Sequence& sequence, int32_t count,
                     int32_t first_row);
  // A fork samples the last row of logits that there is.
  void AddFork(const Sequence& sequence);

  std::vector<const Sequence*> sequences_;
  std::vector<TokenId> tokens_;
  std::vector<int32_t> positions_;
  std::vector<Slot> slots_;
  std::vector<SequenceInput> sequence_inputs_;
  std::vector<int32_t> logits_rows_;
  std::vector<SampleInput> samples_;
  std::vector<ScoreInput> scores_;
  StepInput input_;
};

}  // namespace folio

#endif  // RUNTIME_ENGINE_STEP_BUILDER_H_
