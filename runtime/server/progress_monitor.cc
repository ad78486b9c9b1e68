#include "runtime/server/progress_monitor.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace folio {

ProgressMonitor::ProgressMonitor(absl::Duration stall_timeout,
                                 const RequestRegistry* registry,
                                 const Publisher* publisher,
                                 HealthService* health)
    : stall_timeout_(stall_timeout),
      registry_(registry),
      publisher_(publisher),
      health_(health),
      thread_([this] { Run(); }) {}

ProgressMonitor::~ProgressMonitor() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_one();
  thread_.join();
}

void ProgressMonitor::Run() {
  using std::chrono::steady_clock;
  int64_t last_steps = publisher_->num_steps();
  steady_clock::time_point last_progress = steady_clock::now();
  while (WaitOrStop()) {
    const steady_clock::time_point now = steady_clock::now();
    const int64_t steps = publisher_->num_steps();
    if (steps != last_steps || registry_->empty()) {
      last_steps = steps;
      last_progress = now;
    }
    const absl::Duration still = absl::FromChrono(now - last_progress);
    const bool serving = still < stall_timeout_;
    if (health_->SetServing(serving) && !serving) {
      LOG(ERROR) << "requests are live, but no step was made for "
                 << absl::FormatDuration(still)
                 << "; health says NOT_SERVING until the next one";
    }
  }
}

bool ProgressMonitor::WaitOrStop() {
  const absl::Duration pause = std::min(absl::Seconds(1), stall_timeout_ / 4);
  std::unique_lock lock(mutex_);
  return !stopped_.wait_for(lock, absl::ToChronoMicroseconds(pause),
                            [this] { return stop_; });
}

}  // namespace folio
