// Who goes first.

#ifndef SCHEDULER_SCHEDULING_POLICY_H_
#define SCHEDULER_SCHEDULING_POLICY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "scheduler/scheduler_options.h"
#include "scheduler/sequence.h"

namespace folio {

// What becomes of a waiting sequence that is looked at.
enum class Visit {
  kAdmit,  // It is admitted, were the plan applied.
  kSkip,   // Not now; look at the next one.
  kStop,   // Not now, and nobody behind it either.
};

// The order of those that wait, and among those that run. Everything else
// (budgets, pages, how far) is the planner's. Called by the scheduler only; a
// function of these calls alone. Sequences stay where they are in memory while
// they are in the queue.
class SchedulingPolicy {
 public:
  virtual ~SchedulingPolicy() = default;

  // Puts a sequence into the queue: a new one, or one that was preempted, which
  // stands before those of its class that have not run yet.
  virtual void Push(Sequence& sequence) = 0;

  // Takes it out: it is admitted, or has ended. REQUIRES: it is in the queue.
  virtual void Remove(Sequence& sequence) = 0;

  virtual bool empty() const = 0;

  // Goes through the queue, next first, until `visit` says stop.
  using Visitor = std::function<Visit(const Sequence&)>;
  virtual void ForEachWaiting(const Visitor& visit) const = 0;

  // Of two that run: `a` gets pages before `b`, and `b` gives its own up for
  // `a`. A strict weak order between two calls of Charge.
  virtual bool Before(const Sequence& a, const Sequence& b) const = 0;

  // The sequence's request was admitted for the first time (its prompt is paid
  // for), or the sequence has sampled tokens.
  virtual void ChargePrompt(const Sequence& /*sequence*/) {}
  virtual void ChargeSampled(const Sequence& /*sequence*/, int32_t /*count*/) {}
};

// A row of the table of policies. A new policy is a file and a row.
struct SchedulingPolicyEntry {
  std::string_view name;
  std::string_view description;
  std::unique_ptr<SchedulingPolicy> (*make)(const SchedulerOptions& options);
};

std::span<const SchedulingPolicyEntry> SchedulingPolicies();

// Null: there is none of that name.
const SchedulingPolicyEntry* FindSchedulingPolicy(std::string_view name);

// The rows. Costs are those of each call, with n waiting and t tenants.
//
// fcfs_policy.cc: O(log n).
std::unique_ptr<SchedulingPolicy> MakeFcfsPolicy(const SchedulerOptions&);
// priority_policy.cc: O(log n).
std::unique_ptr<SchedulingPolicy> MakePriorityPolicy(const SchedulerOptions&);
// fair_policy.cc: O(log n + log t).
std::unique_ptr<SchedulingPolicy> MakeFairPolicy(const SchedulerOptions&);

}  // namespace folio

#endif  // SCHEDULER_SCHEDULING_POLICY_H_
