// Time as a run of a load sees it.

#ifndef BENCH_LOAD_RUN_CLOCK_H_
#define BENCH_LOAD_RUN_CLOCK_H_

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"
#include "runtime/base/clock.h"

namespace folio {

class RunClock : public Clock {
 public:
  // Returns at `time`, or as soon as Wake has been called since the last
  // return. One thread.
  virtual void WaitUntil(absl::Time time) = 0;

  // Any thread.
  virtual void Wake() = 0;
};

// The machine's.
class SystemRunClock final : public RunClock {
 public:
  absl::Time Now() const override { return clock_.Now(); }

  void WaitUntil(absl::Time time) override {
    // (A day is as good as for ever, and no number of nanoseconds is exceeded.)
    const absl::Duration left = std::min(time - Now(), absl::Hours(24));
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoNanoseconds(left),
                      [this] { return is_woken_; });
    is_woken_ = false;
  }

  void Wake() override {
    std::lock_guard lock(mutex_);
    is_woken_ = true;
    changed_.notify_one();
  }

 private:
  const SystemClock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_woken_ = false;  // Guarded by mutex_.
};

}  // namespace folio

#endif  // BENCH_LOAD_RUN_CLOCK_H_
