// Classes with ageing.
//
// A request of priority p that arrives at time t stands at t + p * ageing:
// smaller numbers go first, and each `ageing` that a request has waited longer
// makes up for one class. This does not change while it waits, which makes the
// queue an ordered set. Whoever arrives more than (p - q) * ageing after a
// request of priority p can't get ahead of it with priority q; so the lowest
// class waits for those only that arrive within (its priority - the highest) *
// ageing after it, and then for nobody who comes later. Within a class the
// order is that of arrival, in which the preempted stand before those that have
// not run.

#include <algorithm>

#include "scheduler/ordered_policy.h"
#include "scheduler/scheduling_policy.h"

namespace folio {

std::unique_ptr<SchedulingPolicy> MakePriorityPolicy(
    const SchedulerOptions& options) {
  const auto less = [ageing = options.priority_ageing](const Sequence& a,
                                                       const Sequence& b) {
    const auto place = [ageing](const Sequence& sequence) {
      const Request& request = *sequence.request;
      return request.arrival + request.priority * ageing;
    };
    const absl::Time place_a = place(a);
    const absl::Time place_b = place(b);
    return place_a != place_b ? place_a < place_b : ArrivedBefore(a, b);
  };
  return std::make_unique<OrderedPolicy<decltype(less)>>(less);
}

}  // namespace folio
