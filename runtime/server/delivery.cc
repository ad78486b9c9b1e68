#include "runtime/server/delivery.h"

#include <cstdint>

namespace folio {
namespace {

// For fewer, it costs more to wake the helper than it saves.
constexpr size_t kMinShared = 4;

}  // namespace

Delivery::Delivery() : helper_([this] { Help(); }) {}

Delivery::~Delivery() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  has_lanes_.notify_one();
  helper_.join();
}

void Delivery::Add(EventSink* sink, RequestId request,
                   std::span<const TokenEvent> events) {
  lanes_[static_cast<uint64_t>(request) % kNumLanes].push_back(
      {sink, request, events});
  ++num_items_;
}

void Delivery::Run() {
  {
    std::lock_guard lock(mutex_);
    next_lane_ = 0;
  }
  if (num_items_ >= kMinShared) has_lanes_.notify_one();
  DeliverLanes();
  {
    std::unique_lock lock(mutex_);
    is_done_.wait(lock, [this] { return num_at_work_ == 0; });
  }
  for (std::vector<Item>& lane : lanes_) lane.clear();
  num_items_ = 0;
}

void Delivery::Help() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      has_lanes_.wait(lock, [this] { return next_lane_ < kNumLanes || ends_; });
      if (ends_) return;
    }
    DeliverLanes();
  }
}

// Until all lanes are taken.
void Delivery::DeliverLanes() {
  std::unique_lock lock(mutex_);
  while (next_lane_ < kNumLanes) {
    const std::vector<Item>& lane = lanes_[next_lane_++];
    ++num_at_work_;
    lock.unlock();
    for (const Item& item : lane) item.sink->Deliver(item.request, item.events);
    lock.lock();
    if (--num_at_work_ == 0) is_done_.notify_one();
  }
}

}  // namespace folio
