#include "bench/load/client_meter.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ClientLag LagOf(absl::Duration timer_p99, absl::Duration send_p99) {
  ClientLag lag;
  lag.timer.p99 = timer_p99;
  lag.send.p99 = send_p99;
  return lag;
}

TEST(BottleneckNoteTest, IsEmptyUpToTwentyMilliseconds) {
  EXPECT_EQ(BottleneckNote({}), "");
  ClientLag lag = LagOf(absl::Milliseconds(20), absl::Milliseconds(20));
  EXPECT_EQ(BottleneckNote(lag), "");
  // One that was very late is not one of a hundred.
  lag.send.max = absl::Seconds(5);
  lag.timer.max = absl::Seconds(5);
  EXPECT_EQ(BottleneckNote(lag), "");
}

TEST(BottleneckNoteTest, NamesTheWorst) {
  EXPECT_THAT(BottleneckNote(LagOf(absl::Milliseconds(20.5), absl::Seconds(0))),
              AllOf(HasSubstr("timers fired more than 20ms late"),
                    Not(HasSubstr("requests"))));
  EXPECT_THAT(
      BottleneckNote(LagOf(absl::Milliseconds(30), absl::Milliseconds(1250))),
      AllOf(HasSubstr("requests were sent more than 1.25s late"),
            Not(HasSubstr("timers"))));
  EXPECT_THAT(
      BottleneckNote(LagOf(absl::Milliseconds(40), absl::Milliseconds(30))),
      HasSubstr("timers fired more than 40ms late"));
}

// What it measures is the machine's; that it measures is not.
TEST(ClientMeterTest, Summarises) {
  ClientMeter meter;
  const ClientLag lag =
      meter.Stop({absl::Milliseconds(1), absl::Milliseconds(3)});
  EXPECT_EQ(lag.send.count, 2);
  EXPECT_EQ(lag.send.mean, absl::Milliseconds(2));
  EXPECT_GE(lag.busy_cores, 0);
  // It sleeps at least as long as it should.
  EXPECT_EQ(lag.timer.count == 0 || lag.timer.p50 >= absl::ZeroDuration(),
            true);
}

TEST(ClientMeterTest, EndsWithoutBeingAsked) { const ClientMeter meter; }

}  // namespace
}  // namespace folio
