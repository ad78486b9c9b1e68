// Iteration-level scheduling: who computes what in the next step.

#ifndef SCHEDULER_SCHEDULER_H_
#define SCHEDULER_SCHEDULER_H_

#include <cstdint>
#include <list>
#include <memory>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cache/kv_cache.h"
#include "runtime/base/types.h"
#include "scheduler/batch_plan.h"
#include "scheduler/batch_report.h"
#include "scheduler/request.h"
#include "scheduler/sequence.h"
#include "scheduler/step_result.h"
#include "scheduler/token_event.h"

namespace folio {

struct SchedulerOptions {
  // Tokens and sequences that one step computes at most.
  int32_t max_batch_tokens = 512;
  int32_t max_batch_sequences = 32;
  // Give back a sequence's pages after each sample, so that every token costs
  // the whole sequence again: what generating without a cache costs.
  bool recompute_always = false;

  // max_batch_tokens >= max_batch_sequences >= 1, so that no decoding sequence
  // ever waits for the token budget and a prefill always gets some of it.
  absl::Status Validate() const;
};

// A step is Plan, then Apply, then the forward pass and sampling (which are not
// the scheduler's business), then Commit. First come, first served:
//
//   - every running sequence that decodes gets its next token;
//   - what is left of the token budget goes to running sequences with more to
//     compute, oldest first, in chunks;
//   - then waiting requests are admitted, oldest first, while tokens, sequences
//     and pages last. A request is admitted when pages for all its tokens and
//     one more are free, or as many as a window can span.
//   - A running sequence that lacks a page takes those of the youngest running
//     sequence, which goes back to the front of the queue and is recomputed.
//
// The oldest sequence is never preempted for another and always advances, so
// every request finishes. Pages are held by running sequences only.
//
// Costs: Plan, Apply and Commit O(batch + pages added or freed + deadlines
// passed), whatever the number of waiting requests, and O(batch) more for each
// sequence preempted; Add and Abort O(log n).
// Decisions depend on the calls and the times passed in alone. Owned by the
// engine thread; not thread-safe.
class Scheduler {
 public:
  // `cache` must outlive the scheduler and be used by nobody else.
  // `context_length`: the most tokens of one sequence. `pool_bytes`: what the
  // pool takes, for reports. REQUIRES: options.Validate() is OK.
  Scheduler(const SchedulerOptions& options, int32_t context_length,
            int64_t pool_bytes, KvCache* cache);
  ~Scheduler();

  // Puts a request at the end of the queue. REQUIRES: its id is new, and its
  // prompt is not empty and, plus one token, within MaxTokens().
  void Add(std::shared_ptr<const Request> request);

  // Ends a request wherever it is and frees its pages, with its last events.
  // Does nothing (and returns false) when it is not live: it may have finished
  // a moment before.
  bool Abort(RequestId request, FinishReason reason, TokenEvents& events);

  // Aborts all, running ones first.
  void AbortAll(FinishReason reason, TokenEvents& events);

  // Test hook: the next plan preempts the request if it is running then.
  void RequestPreemption(RequestId request);

  // Decides the step at time `now`. A plan may hold no sequence:
  // when nothing is live, or for one step after a preemption that was
  // requested.
  void Plan(absl::Time now, BatchPlan& plan) const;

  // Ends what expired, preempts, admits and allocates as the plan says.
  // REQUIRES: `plan` is the result of Plan with nothing called since.
  void Apply(const BatchPlan& plan, TokenEvents& events);

  // Takes in what the applied plan computed: advances, appends samples, ends
  // what is complete, reports. `result` has one entry for each sequence of the
  // plan, in its order. `report` gets the counts and the memory of the step;
  // its times are the caller's.
  // REQUIRES: Apply(plan) came before, with nothing called since.
  void Commit(const BatchPlan& plan, const StepResult& result,
              TokenEvents& events, BatchReport& report);

  // The state between steps, in the form of a report.
  void Report(BatchReport& report) const;

  // The most tokens, prompt and generated, that a sequence can have here: the
  // context length, or less when the whole pool can't hold that.
  int32_t MaxTokens() const;

  // The sequence of a live request, null when it is not live.
  const Sequence* FindRequest(RequestId request) const;

  // REQUIRES: it is live.
  const Sequence& sequence(SequenceId id) const { return *Find(id); }
  int32_t num_running() const { return static_cast<int32_t>(running_.size()); }
  int32_t num_waiting() const { return static_cast<int32_t>(waiting_.size()); }
  bool HasWork() const { return !running_.empty() || !waiting_.empty(); }
  const SchedulerOptions& options() const { return options_; }
  const KvCache& cache() const { return *cache_; }

  // CHECKs every invariant between steps, in O(live sequences + pages). For
  // tests.
  void CheckInvariants() const;

 private:
  // Sequences are list nodes that are spliced between the two queues, so moving
  // one allocates nothing and iterators stay valid.
  using Queue = std::list<Sequence>;
  class Planner;  // The working state of one Plan.

  Queue::iterator Find(SequenceId id) const;
  void Preempt(SequenceId id);
  void Admit(SequenceId id);
  void CommitSequence(Queue::iterator sequence, const SequenceResult& result,
                      TokenEvents& events);
  // Frees the sequence's pages and forgets it; its last event and the request's
  // terminal one go to `events`.
  void Finish(Queue::iterator sequence, FinishReason reason,
              TokenEvents& events);
  void ReportSequences(BatchReport& report) const;

  const SchedulerOptions options_;
  const int32_t context_length_;
  const int64_t pool_bytes_;
  KvCache* const cache_;

  Queue running_;  // As they were admitted.
  Queue waiting_;  // The preempted at the front, then by arrival.
  absl::flat_hash_map<SequenceId, Queue::iterator> sequences_;
  absl::flat_hash_map<RequestId, Queue::iterator> requests_;
  // Live sequences that have a deadline, soonest first.
  std::set<std::pair<absl::Time, SequenceId>> deadlines_;
  uint64_t next_sequence_id_ = 1;
};

}  // namespace folio

#endif  // SCHEDULER_SCHEDULER_H_
