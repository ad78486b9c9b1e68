#include "scheduler/scheduling_policy.h"

#include <algorithm>

namespace folio {
namespace {

constexpr SchedulingPolicyEntry kPolicies[] = {
    {.name = "fcfs",
     .description = "first come, first served",
     .make = MakeFcfsPolicy},
    {.name = "priority",
     .description = "smaller priorities first; waiting makes up for them",
     .make = MakePriorityPolicy},
    {.name = "fair",
     .description = "the tenant that was served least first",
     .make = MakeFairPolicy},
};

}  // namespace

std::span<const SchedulingPolicyEntry> SchedulingPolicies() {
  return kPolicies;
}

const SchedulingPolicyEntry* FindSchedulingPolicy(std::string_view name) {
  const auto* const entry =
      std::ranges::find(kPolicies, name, &SchedulingPolicyEntry::name);
  return entry == std::end(kPolicies) ? nullptr : entry;
}

}  // namespace folio
