// Durations as Protobuf has them.

#ifndef RUNTIME_SERVER_DURATION_CONVERSION_H_
#define RUNTIME_SERVER_DURATION_CONVERSION_H_

#include <cstdint>

#include "absl/time/time.h"

namespace folio {

// Into a google.protobuf.Duration, or a Timestamp, which is one since the
// epoch.
template <typename SecondsAndNanos>
void SetDuration(absl::Duration duration, SecondsAndNanos& proto) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  proto.set_seconds(seconds);
  proto.set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(duration - absl::Seconds(seconds))));
}

// The other way round; a Timestamp gives the time since the epoch.
template <typename SecondsAndNanos>
absl::Duration ToDuration(const SecondsAndNanos& proto) {
  return absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

template <typename SecondsAndNanos>
double ToSeconds(const SecondsAndNanos& proto) {
  return absl::ToDoubleSeconds(ToDuration(proto));
}

}  // namespace folio

#endif  // RUNTIME_SERVER_DURATION_CONVERSION_H_
