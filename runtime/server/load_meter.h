// How fast the engine works, over the last seconds.

#ifndef RUNTIME_SERVER_LOAD_METER_H_
#define RUNTIME_SERVER_LOAD_METER_H_

#include <array>
#include <cstdint>
#include <mutex>

#include "absl/time/time.h"

namespace folio {

struct TokenRates {  // Tokens a second.
  double prompt = 0;
  double generated = 0;
};

// Means over the last kWindow, which moves in steps of a tenth of a second.
// Before so much time has passed, the time before the start counts as idle.
// Thread-safe; a lock is held for a moment.
class LoadMeter {
 public:
  static constexpr absl::Duration kWindow = absl::Seconds(10);

  // Adds tokens at time `now`. REQUIRES: `now`, of 1970 or later, never
  // decreases.
  void Add(absl::Time now, int64_t prompt_tokens, int64_t generated_tokens);

  // O(1).
  TokenRates Rates(absl::Time now) const;

 private:
  static constexpr int64_t kNumTicks = 100;
  struct Tick {
    int64_t number = -kNumTicks;  // In tenths of a second since 1970.
    int64_t prompt_tokens = 0;
    int64_t generated_tokens = 0;
  };

  mutable std::mutex mutex_;
  std::array<Tick, kNumTicks> ticks_;  // By number % kNumTicks. Guarded.
};

}  // namespace folio

#endif  // RUNTIME_SERVER_LOAD_METER_H_
