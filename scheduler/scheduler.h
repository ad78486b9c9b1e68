// Iteration-level scheduling: who computes what in the next step.

#ifndef SCHEDULER_SCHEDULER_H_
#define SCHEDULER_SCHEDULER_H_

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "cache/kv_cache.h"
#include "cache/memory_report.h"
#include "runtime/base/types.h"
#include "scheduler/applied_plan.h"
#include "scheduler/batch_plan.h"
#include "scheduler/batch_report.h"
#include "scheduler/cost_model.h"
#include "scheduler/live_request.h"
#include "scheduler/planner.h"
#include "scheduler/request.h"
#include "scheduler/scheduler_options.h"
#include "scheduler/scheduling_policy.h"
#include "scheduler/sequence.h"
#include "scheduler/step_result.h"
#include "scheduler/token_event.h"

namespace folio {

// Whether `token`, which is now the last of the sequence, ends it; called once
// for each token that is taken in, in order. For what only those know who know
// text.
using StopRule = absl::FunctionRef<bool(const Sequence&, TokenId token)>;
inline bool NeverStops(const Sequence&, TokenId) { return false; }

// A step is Plan, then Apply, then the forward pass and sampling (which are not
// the scheduler's business), then Commit. Plan decides (planner.cc):
//
//   - Every running sequence that decodes gets its next token.
//   - What is left of the token budget, or what may be used beside decodes, is
//     divided among running sequences with more to compute, in chunks.
//   - Then waiting sequences are admitted, in the order of the policy, while
//     tokens, sequences and pages last. One is admitted when pages are
//     available for all its tokens and one more, for those of all that run, and
//     for a watermark that leaves those room to grow. Alone, it needs none.
//   - A running sequence that lacks a page takes those of the sequence that the
//     policy puts last, which goes back to the queue and is recomputed. After
//     kMaxPreemptions of that, a sequence is admitted only with pages for all
//     that it may ever have set aside for it, and is not preempted again.
//
// So every request finishes: with a protected sequence, it advances in each
// step; without, the one that the policy puts first does, and each preemption
// brings a sequence nearer to being protected. Pages are held by running
// sequences only.
//
// The samples of a request with n > 1 are one sequence until its prompt has
// been computed, and then n, forked: in that step all of them sample from the
// same row of logits.
//
// Costs: Plan, Apply and Commit O(batch * log(batch) + pages added, freed or
// found + deadlines passed), whatever the number of waiting requests, and
// O(batch + pages) more for each sequence preempted; with shared pages, also
// O(pages of those that run) for the report. Add and Abort as the policy's
// Push and Remove.
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

  // Puts a request into the queue. REQUIRES: its id is new; its prompt is not
  // empty and, plus one token, within MaxTokens(); 1 <= n <=
  // max_batch_sequences.
  void Add(std::shared_ptr<const Request> request);

  // Ends a request wherever it is and frees its pages, with its last events.
  // Does nothing (and returns false) when it is not live: it may have finished
  // a moment before.
  bool Abort(RequestId request, FinishReason reason, absl::Time now,
             TokenEvents& events);

  // Aborts all, in the order in which they came.
  void AbortAll(FinishReason reason, absl::Time now, TokenEvents& events);

  // Test hook: the next plan preempts the request if it is running then.
  void RequestPreemption(RequestId request);

  // Decides the step at time `now`. A plan may hold no sequence:
  // when nothing is live, or for one step after a preemption that was
  // requested.
  void Plan(absl::Time now, BatchPlan& plan) const;

  // Ends what expired, preempts, admits, forks and allocates as the plan says;
  // `applied` is what is to be computed.
  // REQUIRES: `plan` is the result of Plan(now) with nothing called since.
  void Apply(const BatchPlan& plan, absl::Time now, AppliedPlan& applied,
             TokenEvents& events);

  // Takes in what the applied plan computed: advances, appends samples, ends
  // what is complete, reports. `result` has one entry for each sequence of the
  // plan, in its order. `report` gets the counts and the memory of the step;
  // its times are the caller's. A sequence ends at a stop token and where
  // `stops` says so.
  // REQUIRES: Apply came before, with nothing called since.
  void Commit(const AppliedPlan& applied, const StepResult& result,
              absl::Time now, StopRule stops, TokenEvents& events,
              BatchReport& report);

  // The state between steps, in the form of a report.
  void Report(BatchReport& report);

  // The most tokens, prompt and generated, that a sequence can have here: the
  // context length, or less when the whole pool can't hold that.
  int32_t MaxTokens() const;

  // Forgets every prefix; returns how many cached pages became free.
  int32_t FlushPrefixCache() { return cache_->FlushPrefixCache(); }

  // The first live sequence of a request, null when it is not live.
  const Sequence* FindRequest(RequestId request) const;

  // REQUIRES: it is live.
  const Sequence& sequence(SequenceId id) const { return *Find(id); }
  int32_t num_running() const { return static_cast<int32_t>(running_.size()); }
  int32_t num_waiting() const { return num_waiting_; }
  bool HasWork() const { return num_running() + num_waiting() > 0; }
  const SchedulerOptions& options() const { return options_; }
  const KvCache& cache() const { return *cache_; }
  const CostModel& cost_model() const { return cost_model_; }
  // Prompt tokens of all requests that have left the queue: that have been
  // admitted, or have ended without ever being so.
  int64_t num_tokens_that_left() const { return num_tokens_that_left_; }

  // CHECKs every invariant between steps, in O(live sequences + pages). For
  // tests.
  void CheckInvariants() const;

 private:
  // The arguments of Commit that all of its parts need.
  struct CommitScope {
    absl::Time now;
    StopRule stops;
    TokenEvents& events;
    BatchReport& report;
  };

  Sequence* Find(SequenceId id) const;
  // Null: it is not live.
  Sequence* FindLive(SequenceId id) const;
  void Preempt(Sequence& sequence);
  void Admit(Sequence& sequence, int32_t num_cached, absl::Time now);
  void Fork(const Sequence& first, AppliedPlan& applied);
  void AddRunning(Sequence& sequence);
  void RemoveRunning(Sequence& sequence);
  // Appends what was sampled, up to a token that stops it or the limit, and
  // says so; returns whether it was stopped.
  bool TakeSampled(Sequence& sequence, const SequenceResult& result,
                   const CommitScope& scope);
  void CommitSequence(Sequence& sequence, const SequenceResult& result,
                      const CommitScope& scope);
  // Frees the sequence's pages and forgets it; its last event, and behind the
  // last one of its request the terminal one, go to `events`.
  void Finish(Sequence& sequence, FinishReason reason, absl::Time now,
              TokenEvents& events);
  void FinishRequest(LiveRequest& live, FinishReason reason, absl::Time now,
                     TokenEvents& events);
  void End(LiveRequest& live, FinishReason reason, absl::Time now,
           TokenEvents& events);
  void ReportSequences(BatchReport& report);
  void CountPages(const Sequence& sequence);
  void FillCounters(BatchReport& report);

  const SchedulerOptions options_;
  const int32_t context_length_;
  KvCache* const cache_;
  MemoryReporter reporter_;
  CostModel cost_model_;
  const std::unique_ptr<SchedulingPolicy> policy_;
  // Scratch memory that Plan works in, no state.
  const std::unique_ptr<Planner> planner_;

  std::vector<Sequence*> running_;  // As they were admitted.
  int32_t num_waiting_ = 0;         // In policy_.
  absl::flat_hash_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  absl::flat_hash_map<RequestId, std::unique_ptr<LiveRequest>> requests_;
  // Live requests that have a deadline, soonest first.
  std::set<std::pair<absl::Time, RequestId>> deadlines_;
  uint64_t next_sequence_id_ = 1;
  uint64_t next_arrival_ = 1;
  int64_t num_steps_ = 0;
  int64_t num_tokens_that_left_ = 0;
  CacheCounters reported_;  // By the reports so far.
  // When the current step began: at the last Commit, since whoever drives the
  // steps takes the next one at once; or, the first after nothing was live, at
  // Apply, before which this is InfinitePast.
  absl::Time step_start_ = absl::InfinitePast();
};

}  // namespace folio

#endif  // SCHEDULER_SCHEDULER_H_
