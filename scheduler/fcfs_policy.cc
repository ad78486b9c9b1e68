// First come, first served.
//
// Whoever runs came before all that wait and have not run, so that the
// preempted are at the front by their arrival alone. The first of all is never
// preempted for another.

#include "scheduler/ordered_policy.h"
#include "scheduler/scheduling_policy.h"

namespace folio {

std::unique_ptr<SchedulingPolicy> MakeFcfsPolicy(const SchedulerOptions&) {
  const auto less = [](const Sequence& a, const Sequence& b) {
    return ArrivedBefore(a, b);
  };
  return std::make_unique<OrderedPolicy<decltype(less)>>(less);
}

}  // namespace folio
