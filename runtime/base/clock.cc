#include "runtime/base/clock.h"

#include <glog/logging.h>

#include <chrono>

#include "absl/time/clock.h"

namespace folio {
namespace {

int64_t MonotonicNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

SystemClock::SystemClock()
    : wall_at_start_(absl::Now()),
      monotonic_at_start_ns_(MonotonicNanoseconds()) {}

absl::Time SystemClock::Now() const {
  return wall_at_start_ +
         absl::Nanoseconds(MonotonicNanoseconds() - monotonic_at_start_ns_);
}

void ManualClock::Advance(absl::Duration by) {
  CHECK(by >= absl::ZeroDuration()) << "a clock can't go back by " << by;
  now_ += by;
}

}  // namespace folio
