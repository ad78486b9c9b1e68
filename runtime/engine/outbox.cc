#include "runtime/engine/outbox.h"

#include <cstddef>
#include <utility>

namespace folio {
namespace {

// As many as a steady flow needs. Those of a longer queue, once there was one,
// are given back, or they would be kept for ever.
constexpr size_t kMaxUnused = 8;

}  // namespace

void Outbox::Push(StepOutput& output) {
  {
    std::lock_guard lock(mutex_);
    if (unused_.empty()) unused_.emplace_back();
    std::swap(unused_.front(), output);
    queue_.splice(queue_.end(), unused_, unused_.begin());
  }
  changed_.notify_one();
  output.Clear();
}

bool Outbox::Pop(StepOutput& output) {
  std::list<StepOutput> surplus;  // Freed when the lock is gone.
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !queue_.empty() || closed_; });
  if (queue_.empty()) return false;
  std::swap(output, queue_.front());
  std::list<StepOutput>& to = unused_.size() < kMaxUnused ? unused_ : surplus;
  to.splice(to.begin(), queue_, queue_.begin());
  return true;
}

void Outbox::Close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace folio
