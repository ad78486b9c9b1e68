#include "bench/load/progress_bar.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ProgressLineTest, SaysHowFarItIs) {
  EXPECT_EQ(ProgressLine({.total = 48,
                          .sent = 30,
                          .live = 18,
                          .ended = 12,
                          .tokens = 5000,
                          .elapsed = absl::Seconds(20)},
                         100),
            "[######..................] 12/48 done, 18 on their way, 20 s, "
            "250 tokens/s");
}

TEST(ProgressLineTest, BeginsAndEnds) {
  EXPECT_EQ(ProgressLine({.total = 3}, 100),
            "[........................] 0/3 done, 0 on their way, 0 s, "
            "0 tokens/s");
  EXPECT_THAT(ProgressLine({.total = 3, .sent = 3, .ended = 3}, 100),
              StartsWith("[########################] 3/3 done, 0 on"));
  // An empty load is done.
  EXPECT_THAT(ProgressLine({}, 100), StartsWith("[########################]"));
  // The bar is full at the end, and not before.
  EXPECT_THAT(ProgressLine({.total = 1000, .ended = 999}, 100),
              StartsWith("[#######################.]"));
}

TEST(ProgressLineTest, SaysWhatWasNotServed) {
  EXPECT_THAT(ProgressLine({.total = 9, .ended = 4, .not_served = 3}, 200),
              HasSubstr(" tokens/s, 3 not served"));
}

// A line that fills the terminal would make a new one.
TEST(ProgressLineTest, IsShorterThanTheTerminal) {
  const RunProgress progress{.total = 9, .ended = 4, .not_served = 3};
  const std::string whole = ProgressLine(progress, 1000);
  for (const int columns : {-1, 0, 1, 2, 10, 40, 80}) {
    const size_t length = std::max(columns - 1, 0);
    EXPECT_EQ(ProgressLine(progress, columns),
              whole.substr(0, std::min(length, whole.size())));
  }
}

}  // namespace
}  // namespace folio
