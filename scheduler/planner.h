// Decides one step.

#ifndef SCHEDULER_PLANNER_H_
#define SCHEDULER_PLANNER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "cache/kv_cache.h"
#include "runtime/base/types.h"
#include "scheduler/batch_plan.h"
#include "scheduler/cost_model.h"
#include "scheduler/page_budget.h"
#include "scheduler/scheduler_options.h"
#include "scheduler/scheduling_policy.h"
#include "scheduler/sequence.h"

namespace folio {

// What a plan is made from. Nothing of it changes while one is made.
struct PlannerInput {
  absl::Time now;
  // In any order that is a function of the calls.
  std::span<Sequence* const> running;
  std::span<const RequestId> expired;  // Requests whose deadline has passed.
};

// Keeps the books of one plan: what would be left of tokens, sequences and
// pages if the plan so far were applied. Owns scratch memory only.
class Planner {
 public:
  // All must outlive the planner.
  Planner(const SchedulerOptions* options, const KvCache* cache,
          const SchedulingPolicy* policy, const CostModel* cost_model);

  // See Scheduler for what is decided, and what it costs.
  void Plan(const PlannerInput& input, BatchPlan& plan);

 private:
  // A running sequence, in the order of the policy.
  struct Candidate {
    const Sequence* sequence;
    bool is_out = false;  // Expired or preempted.
    // If it is protected: pages that are set aside for it, beyond what it has
    // been planned to take.
    int64_t reserved = 0;
    int32_t planned = -1;  // Its index in the plan; -1: not in it yet.
  };

  // What a sequence may still take of the pool: for the tokens that it has and
  // one more, and for the watermark.
  struct Ahead {
    int64_t needed = 0;
    int64_t watermark = 0;
  };

  void TakeOut();
  void PlanDecodes();
  void PlanPrefills();
  void AdmitWaiting();
  void GiveRestToPrefills();

  bool Secure(size_t candidate);
  bool FindVictim(size_t for_whom, size_t& victim) const;
  void Preempt(Candidate& candidate);
  void Reserve(Candidate& candidate, int64_t num_pages);
  void Undo(Candidate& candidate);
  int32_t Compute(Candidate& candidate, int32_t most);
  Visit ConsiderWaiting(const Sequence& sequence);
  int64_t HoldPrefix(const Sequence& sequence);
  void LetGoOfPrefix();
  WaitReason CheckPages(const Sequence& sequence, const Ahead& ahead) const;
  void Admit(const Sequence& sequence, const Ahead& ahead);
  int32_t PrefillBudget() const;
  int32_t TokensWithinTarget(int32_t most) const;

  bool IsExpired(const Sequence& sequence) const {
    return sequence.request->deadline <= input_.now;
  }
  // Pages that computing up to `num_computed` tokens takes, a copy included.
  int64_t PagesToTake(const Sequence& sequence, int64_t num_entries,
                      int64_t num_tokens) const;
  bool WouldCopy(const Sequence& sequence) const;
  Ahead AheadOf(const Sequence& sequence, int64_t num_held) const;

  const SchedulerOptions* const options_;
  const KvCache* const cache_;
  const SchedulingPolicy* const policy_;
  const CostModel* const cost_model_;

  // Of the plan that is being made.
  PlannerInput input_;
  BatchPlan* plan_ = nullptr;
  PageBudget pages_;
  int64_t pages_reserved_ = 0;  // For all candidates.
  int32_t tokens_left_ = 0;
  int32_t prefill_left_ = 0;
  int32_t sequences_left_ = 0;
  bool any_preempted_ = false;
  Ahead ahead_;  // Of all that run, once they have been served.
  StepWork work_;
  std::vector<Candidate> candidates_;
  std::vector<size_t> prefills_;  // Candidates, by turn.
  PrefixMatch match_;
};

}  // namespace folio

#endif  // SCHEDULER_PLANNER_H_
