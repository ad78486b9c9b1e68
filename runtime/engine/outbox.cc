#include "runtime/engine/outbox.h"

#include <utility>

namespace folio {

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
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !queue_.empty() || closed_; });
  if (queue_.empty()) return false;
  std::swap(output, queue_.front());
  unused_.splice(unused_.begin(), queue_, queue_.begin());
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
