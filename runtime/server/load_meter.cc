#include "runtime/server/load_meter.h"

namespace folio {
namespace {

int64_t TickOf(absl::Time time) { return absl::ToUnixMillis(time) / 100; }

}  // namespace

void LoadMeter::Add(absl::Time now, int64_t prompt_tokens,
                    int64_t generated_tokens) {
  const int64_t number = TickOf(now);
  std::lock_guard lock(mutex_);
  Tick& tick = ticks_[number % kNumTicks];
  if (tick.number != number) tick = {.number = number};
  tick.prompt_tokens += prompt_tokens;
  tick.generated_tokens += generated_tokens;
}

TokenRates LoadMeter::Rates(absl::Time now) const {
  const int64_t last = TickOf(now);
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
  {
    std::lock_guard lock(mutex_);
    for (const Tick& tick : ticks_) {
      if (tick.number <= last - kNumTicks) continue;
      prompt_tokens += tick.prompt_tokens;
      generated_tokens += tick.generated_tokens;
    }
  }
  const double seconds = absl::ToDoubleSeconds(kWindow);
  return {.prompt = static_cast<double>(prompt_tokens) / seconds,
          .generated = static_cast<double>(generated_tokens) / seconds};
}

}  // namespace folio
