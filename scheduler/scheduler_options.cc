#include "scheduler/scheduler_options.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scheduler/scheduling_policy.h"

namespace folio {
namespace {

absl::Status CheckPolicy(const std::string& policy) {
  if (FindSchedulingPolicy(policy) != nullptr) return absl::OkStatus();
  std::vector<std::string> names;
  for (const SchedulingPolicyEntry& entry : SchedulingPolicies()) {
    names.emplace_back(entry.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("policy is '", policy,
                                                 "'; it must be one of ",
                                                 absl::StrJoin(names, ", ")));
}

}  // namespace

absl::Status SchedulerOptions::Validate() const {
  if (max_batch_sequences < 1) {
    return absl::InvalidArgumentError(absl::StrCat("max_batch_sequences is ",
                                                   max_batch_sequences,
                                                   "; it must be at least 1"));
  }
  if (max_batch_tokens < max_batch_sequences) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_batch_tokens is ", max_batch_tokens,
        "; it must be at least max_batch_sequences (", max_batch_sequences,
        "), so that every running sequence can get a token in each step"));
  }
  if (!(max_prefill_share > 0 && max_prefill_share <= 1)) {  // NaN is neither.
    return absl::InvalidArgumentError(
        absl::StrCat("max_prefill_share is ", max_prefill_share,
                     "; it must be above 0 and at most 1"));
  }
  if (target_itl.has_value() && *target_itl <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("target_itl is ", absl::FormatDuration(*target_itl),
                     "; it must be more than 0"));
  }
  if (priority_ageing <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "priority_ageing is ", absl::FormatDuration(priority_ageing),
        "; it must be more than 0"));
  }
  if (watermark_pages < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "watermark_pages is ", watermark_pages, "; it must be at least 0"));
  }
  return CheckPolicy(policy);
}

}  // namespace folio
