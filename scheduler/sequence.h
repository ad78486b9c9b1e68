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
#include "scheduler/live_request.h"
#include "scheduler/request.h"
#include "scheduler/token_mask.h"

namespace folio {

// The scheduler's unit. What it shares with the other samples of its request is
// in LiveRequest.
//
// Prefill, decode, recompute after preemption and
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
  // The first sequence of a request; `number` is that of its arrival. The other
  // samples are forked from it. `limit` is the most tokens, prompt included,
  // that it may have.
  Sequence(SequenceId sequence_id, LiveRequest* of, uint64_t number,
           int32_t token_limit)
      : id(sequence_id),
        live(of),
        request(of->request),
        arrival_number(number),
        sample_index(0),
        limit(token_limit),
        num_forks_due(request->n - 1),
        tokens(request->prompt) {
    CloneMasks();
  }

  // Sample `index` of the same request, at the end of its prompt.
  Sequence(SequenceId sequence_id, const Sequence& first, int32_t index)
      : id(sequence_id),
        live(first.live),
        request(first.request),
        arrival_number(first.arrival_number),
        sample_index(index),
        limit(first.limit),
        tokens(first.tokens) {
    CloneMasks();
  }

  int32_t num_tokens() const { return static_cast<int32_t>(tokens.size()); }
  int32_t num_prompt_tokens() const {
    return static_cast<int32_t>(request->prompt.size());
  }
  int32_t num_generated() const { return num_tokens() - num_prompt_tokens(); }
  int32_t num_uncomputed() const { return num_tokens() - num_computed; }
  // Running sequences that it stands for: itself, and those forked from it
  // when its prompt has been computed.
  int32_t num_samples() const { return 1 + num_forks_due; }
  // Whether its request has been admitted before, in this sequence or another.
  bool was_admitted() const { return live->was_admitted(); }

  // Whether computing the next `count` tokens ends with a sample.
  bool SamplesAfter(int32_t count) const {
    return count == num_uncomputed() && num_tokens() < limit;
  }

  // Whether computing the next `count` tokens ends with the prompt's last one,
  // for the first time: what is computed again after a preemption ends with it
  // only where nothing has been sampled, and then it was not complete before.
  bool CompletesPrompt(int32_t count) const {
    return count > 0 && count == num_uncomputed() && num_generated() == 0;
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

  // How often a sequence can be preempted for others. After that it is admitted
  // only with pages for all the tokens that it may ever have, and keeps them.
  static constexpr int32_t kMaxPreemptions = 3;
  bool is_protected() const {
    return num_preemptions_for_others >= kMaxPreemptions;
  }

  const SequenceId id;
  LiveRequest* const live;
  const std::shared_ptr<const Request> request;
  const uint64_t arrival_number;
  const int32_t sample_index;
  const int32_t limit;
  int32_t num_forks_due = 0;

  std::vector<TokenId> tokens;  // The prompt, then what was generated.
  std::vector<std::unique_ptr<TokenMask>> masks;
  PageTable table;
  int32_t num_computed = 0;
  int32_t num_prompt_scored = 0;  // Rows whose prompt logprob has been given.
  int32_t num_preemptions_for_others = 0;
  // The step in which a chunk of it was last computed, or it was admitted.
  int64_t prefill_turn = 0;
  bool is_running = false;
  bool preempt_requested = false;

 private:
  void CloneMasks() {
    for (const auto& mask : request->masks) masks.push_back(mask->Clone());
  }
};

// By request, and within one by sample.
inline bool ArrivedBefore(const Sequence& a, const Sequence& b) {
  return a.arrival_number != b.arrival_number
             ? a.arrival_number < b.arrival_number
             : a.sample_index < b.sample_index;
}

}  // namespace folio

#endif  // SCHEDULER_SEQUENCE_H_
