// A run's clock whose time is a number: it moves when the run waits.

#ifndef TESTS_BENCH_LOAD_VIRTUAL_RUN_CLOCK_H_
#define TESTS_BENCH_LOAD_VIRTUAL_RUN_CLOCK_H_

#include <glog/logging.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "bench/load/run_clock.h"

namespace folio {

// What happens meanwhile are events, each at its time and, of those at one
// time, in the order in which they were added. One thread.
class VirtualRunClock final : public RunClock {
 public:
  explicit VirtualRunClock(absl::Time start) : now_(start) {}

  absl::Time Now() const override { return now_; }

  void WaitUntil(absl::Time time) override {
    ++num_waits_;
    while (!is_woken_ && !events_.empty() && events_.begin()->first <= time) {
      RunNext();
    }
    if (!is_woken_) {
      CHECK(time < absl::InfiniteFuture()) << "nothing would ever happen";
      now_ = std::max(now_, time);
    }
    is_woken_ = false;
    if (lateness_ > absl::ZeroDuration()) RunUntil(now_ + lateness_);
  }

  void Wake() override { is_woken_ = true; }

  // REQUIRES: time >= Now().
  void At(absl::Time time, std::function<void()> event) {
    CHECK(time >= now_) << "the event is in the past";
    events_.emplace(time, std::move(event));
  }

  // From now on the run's thread wakes so much too late from every wait. (What
  // other threads do, events, is on time.)
  void SetLateness(absl::Duration lateness) { lateness_ = lateness; }

  int64_t num_waits() const { return num_waits_; }

 private:
  void RunNext() {
    auto event = events_.extract(events_.begin());
    now_ = std::max(now_, event.key());
    event.mapped()();
  }

  void RunUntil(absl::Time time) {
    while (!events_.empty() && events_.begin()->first <= time) RunNext();
    now_ = std::max(now_, time);
  }

  absl::Time now_;
  std::multimap<absl::Time, std::function<void()>> events_;
  bool is_woken_ = false;
  absl::Duration lateness_;
  int64_t num_waits_ = 0;
};

}  // namespace folio

#endif  // TESTS_BENCH_LOAD_VIRTUAL_RUN_CLOCK_H_
