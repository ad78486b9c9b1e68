#include "bench/load/run_clock.h"

#include <thread>

#include "gtest/gtest.h"

namespace folio {
namespace {

// Whichever comes first, the wait or the call.
TEST(SystemRunClockTest, AWakeEndsAWait) {
  for (int i = 0; i < 200; ++i) {
    SystemRunClock clock;
    std::thread waker([&clock] { clock.Wake(); });
    clock.WaitUntil(absl::InfiniteFuture());
    waker.join();
  }
}

TEST(SystemRunClockTest, WakesBeforeAWaitEndOneWait) {
  SystemRunClock clock;
  clock.Wake();
  clock.Wake();
  clock.WaitUntil(absl::InfiniteFuture());
  // The second wait has its time: it ends at it, or never would.
  const absl::Time time = clock.Now() + absl::Milliseconds(5);
  while (clock.Now() < time) clock.WaitUntil(time);
}

TEST(SystemRunClockTest, WaitsForNothingThatIsOver) {
  SystemRunClock clock;
  clock.WaitUntil(clock.Now() - absl::Seconds(1));
  clock.WaitUntil(absl::InfinitePast());
}

}  // namespace
}  // namespace folio
