// Policies whose order of two sequences never changes.

#ifndef SCHEDULER_ORDERED_POLICY_H_
#define SCHEDULER_ORDERED_POLICY_H_

#include <glog/logging.h>

#include <set>
#include <utility>

#include "scheduler/scheduling_policy.h"

namespace folio {

// `Less` compares two sequences by facts that do not change; no two are equal.
template <typename Less>
class OrderedPolicy final : public SchedulingPolicy {
 public:
  explicit OrderedPolicy(Less less)
      : less_(std::move(less)),
        queue_([this](const Sequence* a, const Sequence* b) {
          return less_(*a, *b);
        }) {}

  void Push(Sequence& sequence) override {
    CHECK(queue_.insert(&sequence).second);
  }
  void Remove(Sequence& sequence) override {
    CHECK_EQ(queue_.erase(&sequence), 1u);
  }
  bool empty() const override { return queue_.empty(); }

  void ForEachWaiting(const Visitor& visit) const override {
    for (const Sequence* sequence : queue_) {
      if (visit(*sequence) == Visit::kStop) return;
    }
  }

  bool Before(const Sequence& a, const Sequence& b) const override {
    return less_(a, b);
  }

 private:
  const Less less_;
  std::set<const Sequence*,
           std::function<bool(const Sequence*, const Sequence*)>>
      queue_;
};

}  // namespace folio

#endif  // SCHEDULER_ORDERED_POLICY_H_
