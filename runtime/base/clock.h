// Time as a dependency: nothing in Folio below the edges reads a clock itself.

#ifndef RUNTIME_BASE_CLOCK_H_
#define RUNTIME_BASE_CLOCK_H_

#include <cstdint>

#include "absl/time/time.h"

namespace folio {

class Clock {
 public:
  virtual ~Clock() = default;

  // Never decreases. Thread-safe.
  virtual absl::Time Now() const = 0;
};

// Follows the machine's monotonic clock, anchored to the wall clock once, at
// construction: readings are real dates, but never jump when the wall clock is
// set.
class SystemClock final : public Clock {
 public:
  SystemClock();
  absl::Time Now() const override;

 private:
  const absl::Time wall_at_start_;
  const int64_t monotonic_at_start_ns_;
};

// Stands still until told to move. For tests, simulations and replays; used by
// one thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(absl::Time start) : now_(start) {}
  absl::Time Now() const override { return now_; }

  // REQUIRES: by >= 0.
  void Advance(absl::Duration by);

 private:
  absl::Time now_;
};

}  // namespace folio

#endif  // RUNTIME_BASE_CLOCK_H_
