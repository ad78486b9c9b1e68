// One token stream being generated, and how far it has come.

#ifndef SCHEDULER_SEQUENCE_H_
#define SCHEDULER_SEQUENCE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cache/page_table.h"
#include "runtime/base/types.h"
#include "scheduler/request.h"

namespace folio {

// The scheduler's unit. Prefill, decode, recompute after preemption and
// resumption after a prefix hit are one rule: a step computes tokens
// [num_computed, num_computed + count), and when that reaches num_tokens() it
// samples one more. There is no phase to keep in step with the counters.
//
//   [0, num_computed)             K/V is in the pages of `table`
//   [num_computed, num_tokens())  known, to be computed
//   [num_tokens(), limit)         still to be sampled
//
// Invariant, between steps:
//   0 <= num_computed <= num_tokens() <= limit   and
//   num_computed <= table.num_entries() * page_size
struct Sequence {
  // `limit` is the most tokens, prompt included, that this sequence may have.
  Sequence(SequenceId sequence_id, std::shared_ptr<const Request> of,
           int32_t index, int32_t token_limit)
      : id(sequence_id),
        request(std::move(of)),
        sample_index(index),
        limit(token_limit),
        tokens(request->prompt) {}

  int32_t num_tokens() const { return static_cast<int32_t>(tokens.size()); }
  int32_t num_prompt_tokens() const {
    return static_cast<int32_t>(request->prompt.size());
  }
  int32_t num_generated() const { return num_tokens() - num_prompt_tokens(); }
  int32_t num_uncomputed() const { return num_tokens() - num_computed; }

  // Whether computing the next `count` tokens ends with a sample.
  bool SamplesAfter(int32_t count) const {
    return count == num_uncomputed() && num_tokens() < limit;
  }

  // Positions [first, end).
  struct Range {
    int32_t first;
    int32_t end;
  };

  // Those of the next `count` tokens whose logits score the prompt token behind
  // them, when that is asked for. Positions that have been scored before a
  // preemption are not scored again.
  Range PromptScoringRange(int32_t count) const {
    if (!request->sampling.prompt_logprobs) return {0, 0};
    const int32_t first = std::max(num_computed, num_prompt_scored);
    const int32_t end = std::min(num_computed + count, num_prompt_tokens() - 1);
    return {first, std::max(first, end)};
  }

  const SequenceId id;
  const std::shared_ptr<const Request> request;
  const int32_t sample_index;
  const int32_t limit;

  std::vector<TokenId> tokens;  // The prompt, then what was generated.
  PageTable table;
  int32_t num_computed = 0;
  int32_t num_prompt_scored = 0;  // Rows whose prompt logprob has been given.
  int32_t num_preemptions = 0;
  bool is_running = false;
  bool preempt_requested = false;
};

}  // namespace folio

#endif  // SCHEDULER_SEQUENCE_H_
