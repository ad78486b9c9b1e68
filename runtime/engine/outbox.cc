#include "runtime/engine/outbox.h"

#include <utility>

namespace folio {

void Outbox::Push(StepOutput& output) {
  {
    std::lock_guard lock(mutex_);
    std::unique_ptr<StepOutput> buffer;
    if (unused_.empty()) {
      buffer = std::make_unique<StepOutput>();
    } else {
      buffer = std::move(unused_.back());
      unused_.pop_back();
    }
    std::swap(*buffer, output);
    queue_.push_back(std::move(buffer));
  }
  changed_.notify_one();
  output.Clear();
}

bool Outbox::Pop(StepOutput& output) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !queue_.empty() || closed_; });
  if (queue_.empty()) return false;
  std::swap(output, *queue_.front());
  unused_.push_back(std::move(queue_.front()));
  queue_.pop_front();
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
