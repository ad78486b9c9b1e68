// Every metric of runs of known timing.

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/load/metrics.h"
#include "bench/load/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/bench/load/run_support.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// Each request by its number in the load.
std::function<Script(const TargetRequest&)> ByName(
    std::map<std::string, Script> scripts) {
  return [scripts = std::move(scripts)](const TargetRequest& request) {
    return scripts.at(request.name);
  };
}

// One server, which takes requests in the order in which they come. In ms after
// the start:
//
//      due    served  tokens at              end
//   0  1000   1000    1100, 1110, 1150       1160
//   1  1050   1160    1220 (two), 1240       1240
//   2  1060   1240    1290                   1290
//   3  1250   refused at once
//   4  1280   1290    1320, 1350, (1410)     1380: cancelled 100 after it came
//   5  1300   never: its deadline passes at 1350, behind request 4
class SmallLoadTest : public testing::Test {
 protected:
  SmallLoadTest() {
    load_ = {
        {.arrival = Ms(1000), .prompt_tokens = 7, .output_tokens = 3},
        {.arrival = Ms(1050), .prompt_tokens = 11, .output_tokens = 3},
        {.arrival = Ms(1060), .prompt_tokens = 13, .output_tokens = 1},
        {.arrival = Ms(1250), .prompt_tokens = 19, .output_tokens = 1},
        {.arrival = Ms(1280),
         .prompt_tokens = 17,
         .output_tokens = 3,
         .cancel_after = Ms(100)},
        {.arrival = Ms(1300), .prompt_tokens = 23, .deadline = Ms(50)},
    };
    result_ = folio::Run(load_, target_, clock_, {});
  }

  VirtualRunClock clock_{RunStart()};
  ScriptedTarget target_{
      &clock_, 1,
      ByName(
          {{"load-0",
            {.messages =
                 {{.time = Ms(100)}, {.time = Ms(110)}, {.time = Ms(150)}},
             .end = Ms(160)}},
           {"load-1",
            {.messages = {{.time = Ms(60), .num_tokens = 2}, {.time = Ms(80)}},
             .end = Ms(80)}},
           {"load-2", {.messages = {{.time = Ms(50)}}, .end = Ms(50)}},
           {"load-3",
            {.status = absl::ResourceExhaustedError("full"),
             .is_refused = true}},
           {"load-4",
            {.messages =
                 {{.time = Ms(30)}, {.time = Ms(60)}, {.time = Ms(120)}},
             .end = Ms(120)}},
           {"load-5", {.messages = {{.time = Ms(1)}}, .end = Ms(1)}}})};
  std::vector<LoadRequest> load_;
  RunResult result_;
};

TEST_F(SmallLoadTest, EachTimeCountsFromTheScheduledArrival) {
  ASSERT_THAT(result_.records, SizeIs(6));
  EXPECT_TRUE(result_.broke_off.ok());
  EXPECT_EQ(result_.start, RunStart());
  const std::vector<RequestRecord>& records = result_.records;
  EXPECT_THAT(records[0].samples,
              ElementsAre(ElementsAre(Ms(100), Ms(110), Ms(150))));
  EXPECT_EQ(records[0].end, Ms(160));
  EXPECT_THAT(records[1].samples,
              ElementsAre(ElementsAre(Ms(170), Ms(170), Ms(190))));
  EXPECT_EQ(records[1].end, Ms(190));
  EXPECT_THAT(records[2].samples, ElementsAre(ElementsAre(Ms(230))));
  EXPECT_EQ(records[2].end, Ms(230));
  EXPECT_THAT(records[3].samples, IsEmpty());
  EXPECT_EQ(records[3].end, Ms(0));
  EXPECT_THAT(records[4].samples, ElementsAre(ElementsAre(Ms(40), Ms(70))));
  EXPECT_EQ(records[4].end, Ms(100));
  EXPECT_THAT(records[5].samples, IsEmpty());
  EXPECT_EQ(records[5].end, Ms(50));
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(records[i].name, absl::StrCat("load-", i));
    EXPECT_EQ(records[i].arrival, load_[i].arrival);
    EXPECT_EQ(records[i].sent, load_[i].arrival);
    EXPECT_EQ(records[i].end_was_asked_for, i >= 4);
  }
  EXPECT_EQ(result_.send_lags, std::vector<absl::Duration>(6));
}

TEST_F(SmallLoadTest, EveryMetricEqualsItsValueComputedByHand) {
  const LoadMetrics metrics =
      Measure(result_.records, {.ttft = Ms(170), .tpot = Ms(25)});
  // 40, 100, 170, 230 of requests 4, 0, 1 and 2.
  EXPECT_EQ(metrics.ttft.count, 4);
  EXPECT_EQ(metrics.ttft.mean, Ms(135));
  EXPECT_EQ(metrics.ttft.p50, Ms(100));
  EXPECT_EQ(metrics.ttft.p90, Ms(230));
  EXPECT_EQ(metrics.ttft.max, Ms(230));
  // 0, 10, 20, 30, 40 of requests 1, 0, 1, 4 and 0.
  EXPECT_EQ(metrics.itl.count, 5);
  EXPECT_EQ(metrics.itl.mean, Ms(20));
  EXPECT_EQ(metrics.itl.p50, Ms(20));
  EXPECT_EQ(metrics.itl.p90, Ms(40));
  EXPECT_EQ(metrics.itl.max, Ms(40));
  // (160 - 100) / 2 and (190 - 170) / 2; request 2 has only one token, and
  // request 4 did not come to its end.
  EXPECT_EQ(metrics.tpot.count, 2);
  EXPECT_EQ(metrics.tpot.mean, Ms(20));
  EXPECT_EQ(metrics.tpot.p50, Ms(10));
  EXPECT_EQ(metrics.tpot.max, Ms(30));
  // 160, 190, 230.
  EXPECT_EQ(metrics.e2e.count, 3);
  EXPECT_EQ(metrics.e2e.mean, Ms(580) / 3);
  EXPECT_EQ(metrics.e2e.p50, Ms(190));
  EXPECT_EQ(metrics.e2e.p95, Ms(230));
  // 0, 110, 180, 10.
  EXPECT_EQ(metrics.queue.count, 4);
  EXPECT_EQ(metrics.queue.mean, Ms(75));
  EXPECT_EQ(metrics.queue.p50, Ms(10));
  EXPECT_EQ(metrics.queue.p99, Ms(180));

  EXPECT_EQ(metrics.requests, 6);
  EXPECT_EQ(metrics.served, 3);
  EXPECT_EQ(metrics.failed, 1);  // Request 3.
  EXPECT_EQ(metrics.good, 1);  // Request 1: 0 has TPOT 30, and 2 has TTFT 230.
  EXPECT_THAT(metrics.statuses,
              ElementsAre(Pair("CANCELLED", 1), Pair("DEADLINE_EXCEEDED", 1),
                          Pair("OK", 3), Pair("RESOURCE_EXHAUSTED", 1)));
  EXPECT_EQ(metrics.output_tokens, 3 + 3 + 1 + 2);
  EXPECT_EQ(metrics.input_tokens, 7 + 11 + 13 + 17);
  EXPECT_EQ(metrics.duration, Ms(350));  // From 1000 to the token at 1350.
  EXPECT_DOUBLE_EQ(metrics.output_tokens_per_second, 9 / 0.35);
  EXPECT_DOUBLE_EQ(metrics.input_tokens_per_second, 48 / 0.35);
  EXPECT_DOUBLE_EQ(metrics.total_tokens_per_second, 57 / 0.35);
  EXPECT_DOUBLE_EQ(metrics.requests_per_second, 3 / 0.35);
  EXPECT_DOUBLE_EQ(metrics.goodput, 1 / 0.35);
}

// Request i of 200 gets its token after 200 - i ms: of 1, ..., 200 ms, the
// nearest ranks are 100, 180, 190 and 198.
TEST(RunMetricsTest, PercentilesAreNearestRanks) {
  VirtualRunClock clock(RunStart());
  ScriptedTarget target(&clock, 200, [](const TargetRequest& request) {
    return Steady(request, Ms(201 - request.max_tokens), Ms(0));
  });
  std::vector<LoadRequest> load;
  for (int i = 0; i < 200; ++i) load.push_back({.output_tokens = i + 1});
  const LoadMetrics metrics =
      Measure(folio::Run(load, target, clock, {}).records);
  EXPECT_EQ(metrics.ttft.count, 200);
  EXPECT_EQ(metrics.ttft.mean, Ms(100.5));
  EXPECT_EQ(metrics.ttft.p50, Ms(100));
  EXPECT_EQ(metrics.ttft.p90, Ms(180));
  EXPECT_EQ(metrics.ttft.p95, Ms(190));
  EXPECT_EQ(metrics.ttft.p99, Ms(198));
  EXPECT_EQ(metrics.ttft.max, Ms(200));
}

}  // namespace
}  // namespace folio
