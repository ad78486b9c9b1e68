// Fairness between tenants: the virtual token counter of Sheng, Cao, Li, Zhu,
// Li, Zhuo, Gonzalez, Stoica, "Fairness in Serving Large Language Models", OSDI
// 2024.
//
// Each tenant's counter rises by what it is served: kPromptCost a prompt token
// when the request is admitted first, kSampledCost a sampled token. (Tokens
// that are computed again after a preemption cost nothing.) Of the tenants with
// waiting requests, the one with the least counter is next, whatever number of
// requests the others send. A tenant that comes back after having nothing to
// wait for starts at the least counter of those that wait, so that it can't
// save up what it did not use.
//
// Bound (their theorem 4.4): while two tenants both have requests waiting, the
// costs of what they are served differ by at most
//
//   2 * max(kPromptCost * longest prompt, kSampledCost * M)
//
// where M is the most tokens of all that run together: the pool's, or
// max_batch_sequences times the most tokens of a sequence, if that is less.
//
// Among the requests of a tenant, and between those that run of equal tenants,
// the order is that of arrival.

#include <glog/logging.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "scheduler/scheduling_policy.h"

namespace folio {
namespace {

struct InOrderOfArrival {
  bool operator()(const Sequence* a, const Sequence* b) const {
    return ArrivedBefore(*a, *b);
  }
};
using TenantQueue = std::set<const Sequence*, InOrderOfArrival>;

struct Tenant {
  uint64_t number;  // In order of first arrival.
  int64_t counter = 0;
  TenantQueue waiting;
};

// The least counter first.
struct LeastServed {
  bool operator()(const Tenant* a, const Tenant* b) const {
    return a->counter != b->counter ? a->counter < b->counter
                                    : a->number < b->number;
  }
};

class FairPolicy final : public SchedulingPolicy {
 public:
  void Push(Sequence& sequence) override {
    Tenant& tenant = TenantOf(sequence);
    if (tenant.waiting.empty()) {
      tenant.counter = std::max(tenant.counter, LeastCounter());
      waiting_tenants_.insert(&tenant);
    }
    CHECK(tenant.waiting.insert(&sequence).second);
  }

  void Remove(Sequence& sequence) override {
    Tenant& tenant = TenantOf(sequence);
    CHECK_EQ(tenant.waiting.erase(&sequence), 1u);
    if (!tenant.waiting.empty()) return;
    waiting_tenants_.erase(&tenant);
    last_to_wait_ = &tenant;
  }

  bool empty() const override { return waiting_tenants_.empty(); }

  void ForEachWaiting(const Visitor& visit) const override;

  bool Before(const Sequence& a, const Sequence& b) const override {
    const int64_t counter_a = CounterOf(a);
    const int64_t counter_b = CounterOf(b);
    return counter_a != counter_b ? counter_a < counter_b : ArrivedBefore(a, b);
  }

  void ChargePrompt(const Sequence& sequence) override {
    Charge(sequence, PromptCost(sequence));
  }
  void ChargeSampled(const Sequence& sequence, int32_t count) override {
    Charge(sequence, int64_t{count} * kFairSampledCost);
  }

 private:
  static int64_t PromptCost(const Sequence& sequence) {
    return int64_t{sequence.num_prompt_tokens()} * kFairPromptCost;
  }

  Tenant& TenantOf(const Sequence& sequence) {
    auto [entry, is_new] = tenants_.try_emplace(sequence.request->tenant);
    if (is_new) {
      entry->second = std::make_unique<Tenant>();
      entry->second->number = num_tenants_++;
      entry->second->counter = forgotten_counter_;
    }
    Tenant& tenant = *entry->second;
    if (is_new && tenants_.size() >= forget_at_) ForgetIdle(tenant);
    return tenant;
  }

  // A tenant with nothing to wait for and no more than the least counter would
  // start at that, known or not. Amortised O(1) a new tenant.
  void ForgetIdle(const Tenant& keep) {
    const int64_t least = LeastCounter();
    absl::erase_if(tenants_, [&](const auto& entry) {
      const Tenant& tenant = *entry.second;
      return &tenant != &keep && &tenant != last_to_wait_ &&
             tenant.waiting.empty() && tenant.counter <= least;
    });
    forgotten_counter_ = std::max(forgotten_counter_, least);
    forget_at_ = std::max(kForgetAt, 2 * tenants_.size());
  }

  int64_t CounterOf(const Sequence& sequence) const {
    const auto entry = tenants_.find(sequence.request->tenant);
    return entry == tenants_.end() ? LeastCounter() : entry->second->counter;
  }

  // Of the tenants that wait, or when none does, of the last one that did.
  int64_t LeastCounter() const {
    if (!waiting_tenants_.empty()) return (*waiting_tenants_.begin())->counter;
    return last_to_wait_ == nullptr ? 0 : last_to_wait_->counter;
  }

  void Charge(const Sequence& sequence, int64_t cost) {
    Tenant& tenant = TenantOf(sequence);
    const bool waits = !tenant.waiting.empty();
    auto node = waits ? waiting_tenants_.extract(&tenant)
                      : decltype(waiting_tenants_)::node_type();
    tenant.counter += cost;
    if (waits) waiting_tenants_.insert(std::move(node));
  }

  static constexpr size_t kForgetAt = 1024;

  absl::flat_hash_map<std::string, std::unique_ptr<Tenant>> tenants_;
  uint64_t num_tenants_ = 0;
  size_t forget_at_ = kForgetAt;
  std::set<Tenant*, LeastServed> waiting_tenants_;
  const Tenant* last_to_wait_ = nullptr;  // Of those that no longer do.
  // The most that a tenant that was forgotten had; nobody new starts lower.
  int64_t forgotten_counter_ = 0;
};

// A tenant whose request is admitted pays for its prompt at once, so the next
// one in the same step may be another's. Those that were visited stand in a
// heap beside the set, with what they would have paid.
void FairPolicy::ForEachWaiting(const Visitor& visit) const {
  struct Visited {
    int64_t counter;
    uint64_t number;
    const Tenant* tenant;
    TenantQueue::const_iterator next;

    bool operator>(const Visited& other) const {
      return std::pair(counter, number) >
             std::pair(other.counter, other.number);
    }
  };
  std::vector<Visited> heap;
  auto unvisited = waiting_tenants_.begin();
  while (true) {
    if (unvisited != waiting_tenants_.end()) {
      const Tenant& tenant = **unvisited;
      if (heap.empty() || std::pair(heap.front().counter, heap.front().number) >
                              std::pair(tenant.counter, tenant.number)) {
        heap.push_back({.counter = tenant.counter,
                        .number = tenant.number,
                        .tenant = &tenant,
                        .next = tenant.waiting.begin()});
        std::ranges::push_heap(heap, std::greater<>());
        ++unvisited;
      }
    }
    if (heap.empty()) return;
    std::ranges::pop_heap(heap, std::greater<>());
    Visited& next = heap.back();
    const Sequence& sequence = **next.next++;
    const Visit verdict = visit(sequence);
    if (verdict == Visit::kStop) return;
    if (verdict == Visit::kAdmit && !sequence.was_admitted()) {
      next.counter += PromptCost(sequence);
    }
    if (next.next == next.tenant->waiting.end()) {
      heap.pop_back();
    } else {
      std::ranges::push_heap(heap, std::greater<>());
    }
  }
}

}  // namespace

std::unique_ptr<SchedulingPolicy> MakeFairPolicy(const SchedulerOptions&) {
  return std::make_unique<FairPolicy>();
}

}  // namespace folio
