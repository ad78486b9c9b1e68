#include "runtime/server/load_meter.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace folio {
namespace {

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(1e9 + seconds);
}

TEST(LoadMeter, IsIdleAtFirst) {
  const LoadMeter meter;
  EXPECT_EQ(meter.Rates(At(0)).prompt, 0);
  EXPECT_EQ(meter.Rates(At(0)).generated, 0);
  EXPECT_EQ(meter.Rates(absl::UnixEpoch()).prompt, 0);
}

TEST(LoadMeter, IsTheMeanOfTenSeconds) {
  LoadMeter meter;
  meter.Add(At(0), 300, 10);
  meter.Add(At(4.05), 0, 30);
  EXPECT_EQ(meter.Rates(At(4.05)).prompt, 30);
  EXPECT_EQ(meter.Rates(At(4.05)).generated, 4);
  EXPECT_EQ(meter.Rates(At(9.95)).prompt, 30);
  // What is ten seconds old counts no more.
  EXPECT_EQ(meter.Rates(At(10)).prompt, 0);
  EXPECT_EQ(meter.Rates(At(10)).generated, 3);
  EXPECT_EQ(meter.Rates(At(14.1)).generated, 0);
  // A place that was used before.
  meter.Add(At(20), 50, 0);
  EXPECT_EQ(meter.Rates(At(20)).prompt, 5);
  EXPECT_EQ(meter.Rates(At(20)).generated, 0);
}

TEST(LoadMeter, CountsASteadyFlow) {
  LoadMeter meter;
  // In the middle of hundredths: a double has no exact ones.
  for (int step = 0; step < 3000; ++step) {
    meter.Add(At(step * 0.01 + 0.005), 2, 1);
  }
  // 100 steps a second; the tenth of a second that has begun is whole here.
  EXPECT_EQ(meter.Rates(At(29.995)).prompt, 200);
  EXPECT_EQ(meter.Rates(At(29.995)).generated, 100);
}

TEST(LoadMeter, IsReadWhileItIsFed) {
  LoadMeter meter;
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) {
      const TokenRates rates = meter.Rates(At(0));
      EXPECT_EQ(rates.prompt, 3 * rates.generated);
    }
  });
  for (int i = 0; i < 100000; ++i) meter.Add(At(0), 30, 10);
  done = true;
  reader.join();
  EXPECT_EQ(meter.Rates(At(0)).generated, 100000);
}

}  // namespace
}  // namespace folio
