// What a forward pass and the sampler made of a plan.

#ifndef SCHEDULER_STEP_RESULT_H_
#define SCHEDULER_STEP_RESULT_H_

#include "runtime/base/recycled_vector.h"
#include "runtime/base/types.h"
#include "scheduler/scored_tokens.h"

namespace folio {

struct SequenceResult {
  SequenceId id{};
  // What was sampled: nothing after a chunk that ends before the last token,
  // one token today, more with speculation.
  ScoredTokens sampled;
  // Prompt tokens whose logprobs this step has found, in order.
  ScoredTokens prompt;
  // Its logits had a NaN; nothing else here means anything.
  bool not_finite = false;
  // Nothing was sampled, because its masks left no token.
  bool exhausted = false;

  void Clear() {
    id = SequenceId{};
    sampled.Clear();
    prompt.Clear();
    not_finite = false;
    exhausted = false;
  }
};

// One entry for each entry of the plan, in its order.
struct StepResult {
  RecycledVector<SequenceResult> sequences;
};

}  // namespace folio

#endif  // SCHEDULER_STEP_RESULT_H_
