#include "runtime/base/clock.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace folio {
namespace {

TEST(SystemClock, NeverDecreasesAndMoves) {
  const SystemClock clock;
  const absl::Time start = clock.Now();
  absl::Time last = start;
  while (last == start) {
    const absl::Time now = clock.Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(SystemClock, ReadsTheDate) {
  const absl::Time before = absl::Now();
  const SystemClock clock;
  const absl::Time reading = clock.Now();
  // The two clocks are read a moment apart, between these readings of one.
  EXPECT_GE(reading, before);
  EXPECT_LT(reading - before, absl::Minutes(1));
}

TEST(ManualClock, MovesOnlyWhenTold) {
  const absl::Time start = absl::UnixEpoch() + absl::Hours(5);
  ManualClock clock(start);
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(absl::Milliseconds(3));
  clock.Advance(absl::ZeroDuration());
  EXPECT_EQ(clock.Now(), start + absl::Milliseconds(3));
  EXPECT_DEATH(clock.Advance(-absl::Nanoseconds(1)), "go back");
}

}  // namespace
}  // namespace folio
