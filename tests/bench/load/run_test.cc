#include "bench/load/run.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/load/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/bench/load/run_support.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

class RunTest : public testing::Test {
 protected:
  VirtualRunClock clock_{RunStart()};
};

std::function<Script(const TargetRequest&)> AlwaysSteady(absl::Duration first,
                                                         absl::Duration next) {
  return [first, next](const TargetRequest& request) {
    return Steady(request, first, next);
  };
}

// It serves one request a second, and ten come in each. None waits to be sent,
// and the queue shows: request i is done at 1 + i seconds.
TEST_F(RunTest, AnOpenLoopIsNotSlowedByASlowServer) {
  ScriptedTarget target(&clock_, 1, AlwaysSteady(Ms(1000), Ms(0)));
  std::vector<LoadRequest> load;
  std::vector<absl::Duration> times;
  for (int i = 0; i < 100; ++i) {
    times.push_back(Ms(100) * i);
    load.push_back({.arrival = times.back()});
  }
  const RunResult result = folio::Run(load, target, clock_, {});
  EXPECT_EQ(SendTimes(target), times);
  EXPECT_EQ(ArrivalsOf(result), times);
  EXPECT_GE(target.max_live(), 90);
  for (int i = 0; i < 100; ++i) {
    const RequestRecord& record = result.records[i];
    EXPECT_EQ(TimeToFirstToken(record), Ms(1000) * (i + 1) - times[i]);
    EXPECT_EQ(record.queue_duration, Ms(1000) * i - times[i]);
  }
}

// The client wakes 30 ms too late each time. That is seen, and hides nothing:
// the server's 50 ms begin when the request comes to it.
TEST_F(RunTest, ALateClientIsSeen) {
  ScriptedTarget target(&clock_, 10, AlwaysSteady(Ms(50), Ms(10)));
  clock_.SetLateness(Ms(30));
  const std::vector<LoadRequest> load = {{.arrival = Ms(0)},
                                         {.arrival = Ms(100)},
                                         {.arrival = Ms(150)},
                                         {.arrival = Ms(1000)}};
  const RunResult result = folio::Run(load, target, clock_, {});
  // The first one needs no waiting; when it ends, at 50, nothing is due until
  // 100, so that the wait that brings the second ends at 130. That of the third
  // begins there, and that of the fourth after the third's end.
  EXPECT_THAT(SendTimes(target),
              ElementsAre(Ms(0), Ms(130), Ms(180), Ms(1030)));
  EXPECT_THAT(ArrivalsOf(result),
              ElementsAre(Ms(0), Ms(100), Ms(150), Ms(1000)));
  EXPECT_THAT(result.send_lags, ElementsAre(Ms(0), Ms(30), Ms(30), Ms(30)));
  EXPECT_EQ(result.records[1].sent, Ms(130));
  EXPECT_EQ(TimeToFirstToken(result.records[0]), Ms(50));
  EXPECT_EQ(TimeToFirstToken(result.records[1]), Ms(80));
}

// The times at which `load` comes to a target that does not keep it waiting.
std::vector<absl::Duration> ReplayedTimes(const std::vector<LoadRequest>& load,
                                          VirtualRunClock& clock) {
  ScriptedTarget target(&clock, 3, AlwaysSteady(Ms(70), Ms(11)));
  EXPECT_TRUE(folio::Run(load, target, clock, {}).broke_off.ok());
  EXPECT_EQ(target.seen().size(), load.size());
  // Each is the one that it should be.
  for (const ScriptedTarget::Seen& seen : target.seen()) {
    const size_t i = std::stoul(seen.request.name.substr(5));
    EXPECT_EQ(seen.sent - RunStart(), load[i].arrival);
    EXPECT_EQ(seen.request.max_tokens, load[i].output_tokens);
    EXPECT_EQ(std::get<std::vector<TokenId>>(seen.request.prompt).size(),
              size_t{0} + load[i].prompt_tokens);
  }
  return SendTimes(target);
}

TEST_F(RunTest, ATraceReplaysAtItsTimes) {
  const auto load = ParseTrace(
      R"({"arrival_s": 0.5, "prompt_tokens": 3, "output_tokens": 4, "token_seed": 1})"
      "\n"
      R"({"arrival_s": 0.0001, "prompt_tokens": 4, "output_tokens": 3, "token_seed": 2})"
      "\n"
      R"({"arrival_s": 100, "prompt_tokens": 5, "output_tokens": 2, "token_seed": 3})"
      "\n"
      R"({"arrival_s": 0.5, "prompt_tokens": 6, "output_tokens": 1, "token_seed": 4})",
      "t");
  ASSERT_TRUE(load.ok()) << load.status();
  EXPECT_THAT(ReplayedTimes(*load, clock_),
              ElementsAre(Ms(0.1), Ms(500), Ms(500), Ms(100000)));
}

TEST_F(RunTest, TheSharedTracesReplayAtTheirTimes) {
  for (const char* const name :
       {"chat-burst", "chat-steady-long-prompts", "chat-lengths-2000"}) {
    const std::string path =
        absl::StrCat(FOLIO_SHARED_DIR, "/traces/", name, ".jsonl");
    if (!std::filesystem::exists(path)) {
      GTEST_SKIP() << "There is no trace at " << path;
    }
    const auto load = ReadTrace(path);
    ASSERT_TRUE(load.ok()) << load.status();
    std::vector<absl::Duration> times;
    for (const LoadRequest& request : *load) times.push_back(request.arrival);
    std::ranges::sort(times);
    VirtualRunClock clock(RunStart());
    EXPECT_EQ(ReplayedTimes(*load, clock), times) << name;
  }
}

// Three at a time, in the order of their times, which have no other effect.
// They take 30, 100, 60 and so on.
TEST_F(RunTest, AClosedLoopKeepsItsConcurrency) {
  ScriptedTarget target(&clock_, 10, [](const TargetRequest& request) {
    return Steady(request, Ms(10) * request.max_tokens, Ms(0));
  });
  const std::vector<LoadRequest> load = {
      {.arrival = absl::Hours(2), .output_tokens = 6},
      {.arrival = absl::Hours(1), .output_tokens = 3},
      {.arrival = absl::Hours(1), .output_tokens = 10},
      {.arrival = absl::Hours(5), .output_tokens = 1},
      {.arrival = absl::Hours(3), .output_tokens = 5},
      {.arrival = absl::Hours(4), .output_tokens = 2}};
  const RunResult result = folio::Run(load, target, clock_, {.concurrency = 3});
  // Of the first three, 1, 2 and 0, those of 30 and 60 end first. 4 runs from
  // 30 to 80, 5 from 60 to 80, 3 from 80.
  EXPECT_THAT(ArrivalsOf(result),
              ElementsAre(Ms(0), Ms(0), Ms(0), Ms(80), Ms(30), Ms(60)));
  EXPECT_THAT(SendTimes(target),
              ElementsAre(Ms(0), Ms(0), Ms(0), Ms(30), Ms(60), Ms(80)));
  std::vector<std::string> names;
  for (const auto& seen : target.seen()) names.push_back(seen.request.name);
  EXPECT_THAT(names, ElementsAre("load-1", "load-2", "load-0", "load-4",
                                 "load-5", "load-3"));
  EXPECT_EQ(target.max_live(), 3);
  EXPECT_EQ(TimeToFirstToken(result.records[3]), Ms(10));
  EXPECT_EQ(result.send_lags, std::vector<absl::Duration>(6));
}

TEST_F(RunTest, AClosedLoopIsNeverIdle) {
  for (const int concurrency : {1, 2, 7, 100}) {
    VirtualRunClock clock(RunStart());
    // Fewer servers than there are requests on their way: the rest queues.
    ScriptedTarget target(&clock, 3, AlwaysSteady(Ms(20), Ms(3)));
    std::vector<LoadRequest> load;
    for (int i = 0; i < 50; ++i) load.push_back({.output_tokens = 1 + i % 7});
    const RunResult result =
        folio::Run(load, target, clock, {.concurrency = concurrency});
    EXPECT_EQ(target.max_live(), std::min(concurrency, 50));
    // From the first end on, each send is at the time of an end.
    std::vector<absl::Time> ends;
    for (const auto& seen : target.seen()) ends.push_back(seen.end);
    std::ranges::sort(ends);
    for (size_t i = 0; i < 50; ++i) {
      const auto slots = static_cast<size_t>(concurrency);
      const absl::Time expected = i < slots ? RunStart() : ends[i - slots];
      EXPECT_EQ(target.seen()[i].sent, expected) << concurrency << " " << i;
      EXPECT_EQ(result.start + result.records[i].arrival, expected);
    }
  }
}

// A slot that has come free is used too late: the time counts from its end.
TEST_F(RunTest, AClosedLoopCountsFromTheSlot) {
  ScriptedTarget target(&clock_, 10, AlwaysSteady(Ms(50), Ms(10)));
  clock_.SetLateness(Ms(30));
  const std::vector<LoadRequest> load(3);
  const RunResult result = folio::Run(load, target, clock_, {.concurrency = 1});
  EXPECT_THAT(SendTimes(target), ElementsAre(Ms(0), Ms(80), Ms(160)));
  EXPECT_THAT(ArrivalsOf(result), ElementsAre(Ms(0), Ms(50), Ms(130)));
  EXPECT_THAT(result.send_lags, ElementsAre(Ms(0), Ms(30), Ms(30)));
  EXPECT_EQ(TimeToFirstToken(result.records[1]), Ms(80));
}

TEST_F(RunTest, WhatTheTargetTellsCounts) {
  ScriptedTarget target(&clock_, 1, [](const TargetRequest& request) {
    Script script = Steady(request, Ms(5), Ms(1));
    script.tells_queue = false;
    if (request.name == "load-1") {
      script.told_prompt_tokens = 100;
      script.told_output_tokens = 30;
    }
    return script;
  });
  const RunResult result = folio::Run(
      std::vector<LoadRequest>(2, {.prompt_tokens = 6, .output_tokens = 4}),
      target, clock_, {});
  EXPECT_EQ(result.records[0].prompt_tokens, 6);
  EXPECT_EQ(OutputTokens(result.records[0]), 4);
  EXPECT_EQ(result.records[1].prompt_tokens, 100);
  EXPECT_EQ(OutputTokens(result.records[1]), 30);
  EXPECT_EQ(result.records[1].queue_duration, std::nullopt);
  EXPECT_EQ(Measure(result.records).queue.count, 0);
}

TEST_F(RunTest, TheTargetGetsWhatTheLoadSays) {
  ScriptedTarget target(&clock_, 9, AlwaysSteady(Ms(5), Ms(1)));
  const std::vector<LoadRequest> load = {
      {.arrival = Ms(40),
       .prompt_tokens = 5,
       .output_tokens = 7,
       .token_seed = 3,
       .prefix_seed = 4,
       .prefix_tokens = 6,
       .tenant = "a",
       .priority = -2,
       .n = 3,
       .deadline = Ms(900),
       .read_delay = Ms(8)},
      {.arrival = Ms(50), .prompt_text = "Hello"}};
  const RunResult result = folio::Run(load, target, clock_, {.vocab_size = 99});
  ASSERT_THAT(target.seen(), SizeIs(2));
  const TargetRequest& request = target.seen()[0].request;
  EXPECT_EQ(request.prompt, Prompt(PromptTokens(load[0], 99)));
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.n, 3);
  EXPECT_EQ(request.tenant, "a");
  EXPECT_EQ(request.priority, -2);
  EXPECT_EQ(request.deadline, RunStart() + Ms(940));
  EXPECT_EQ(request.read_delay, Ms(8));
  EXPECT_EQ(result.records[0].tenant, "a");
  EXPECT_EQ(result.records[0].prompt_tokens, 11);
  const TargetRequest& text = target.seen()[1].request;
  EXPECT_EQ(text.prompt, Prompt("Hello"));
  EXPECT_EQ(text.deadline, absl::InfiniteFuture());
  EXPECT_EQ(text.n, 1);
}

// Progress, every 200 ms. The sixth is refused.
TEST_F(RunTest, ProgressIsTold) {
  ScriptedTarget target(&clock_, 1, [](const TargetRequest& request) {
    Script script = Steady(request, Ms(100), Ms(20));
    script.is_refused = request.name == "load-5";
    if (script.is_refused) script.status = absl::InternalError("no");
    return script;
  });
  std::vector<LoadRequest> load(6, {.output_tokens = 5});  // 180 ms each.
  load[5].arrival = Ms(390);
  std::vector<RunProgress> seen;
  folio::Run(load, target, clock_,
             {.on_progress = [&](const RunProgress& progress) {
               seen.push_back(progress);
             }});
  // At 0, 200, 400, 600, 800: ends at 180, 360, 390, 540, 720, 900.
  ASSERT_THAT(seen, SizeIs(5));
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(seen[i].elapsed, Ms(200) * i);
    EXPECT_EQ(seen[i].total, 6);
    EXPECT_EQ(seen[i].sent, i < 2 ? 5 : 6);
    EXPECT_EQ(seen[i].live, seen[i].sent - seen[i].ended);
    EXPECT_EQ(seen[i].not_served, i < 2 ? 0 : 1);
  }
  EXPECT_EQ(seen[1].ended, 1);
  EXPECT_EQ(seen[2].ended, 3);
  EXPECT_EQ(seen[4].ended, 5);
  EXPECT_EQ(seen[1].tokens, 5);
  EXPECT_EQ(seen[2].tokens, 10);
  EXPECT_EQ(seen[4].tokens, 20);  // The fifth one's first comes at 820.
}

// The computer's clock is an hour ahead. Reports take 3 ms to come at least;
// the third one takes 10. The first batch began before the run.
TEST_F(RunTest, BatchesAreOnTheRunsClock) {
  ScriptedTarget target(&clock_, 1, AlwaysSteady(Ms(100), Ms(20)));
  const absl::Time ahead = RunStart() + absl::Hours(1);
  target.AddBatch(RunStart() + Ms(18), {.step = 7,
                                        .start = ahead - Ms(5),
                                        .duration = Ms(20),
                                        .sequences = {{.request = "load-0"}}});
  target.AddBatch(RunStart() + Ms(43),
                  {.step = 8, .start = ahead + Ms(20), .duration = Ms(20)});
  target.AddBatch(RunStart() + Ms(100),
                  {.step = 9, .start = ahead + Ms(60), .duration = Ms(30)});
  // The run has ended by then.
  target.AddBatch(RunStart() + Ms(150),
                  {.step = 10, .start = ahead + Ms(120), .duration = Ms(30)});
  const RunResult result =
      folio::Run(std::vector<LoadRequest>(1), target, clock_, {});
  ASSERT_THAT(result.batches, SizeIs(3));
  // Later by the 3 ms that no report was without.
  EXPECT_EQ(result.batches[0].start, Ms(-2));
  EXPECT_EQ(result.batches[1].start, Ms(23));
  EXPECT_EQ(result.batches[2].start, Ms(63));
  EXPECT_EQ(result.batches[0].sample.step, 7);
  EXPECT_EQ(result.batches[2].sample.step, 9);
  EXPECT_THAT(result.batches[0].sample.sequences, SizeIs(1));
  EXPECT_FALSE(target.is_watched());
}

// The sequences of all steps of a long run would take more than all else.
TEST_F(RunTest, KeepsTheSequencesOfFewBatches) {
  constexpr int kBatches = 1000;
  constexpr int kFullest = 777;  // No multiple of a power of two.
  ScriptedTarget target(&clock_, 1, AlwaysSteady(Ms(100), Ms(20)));
  for (int i = 0; i < kBatches; ++i) {
    target.AddBatch(RunStart() + Ms(0.01 * i),
                    {.step = i,
                     .start = RunStart() + Ms(0.01 * i),
                     .pages_in_use = i == kFullest ? 5000 : i,
                     .sequences = {{.request = "load-0"}}});
  }
  const RunResult result =
      folio::Run(std::vector<LoadRequest>(1), target, clock_, {});
  ASSERT_THAT(result.batches, SizeIs(kBatches));
  std::vector<int> kept;
  for (int i = 0; i < kBatches; ++i) {
    if (!result.batches[i].sample.sequences.empty()) kept.push_back(i);
  }
  EXPECT_THAT(kept.size(), AllOf(Ge(64u), Le(130u)));
  EXPECT_EQ(kept.front(), 0);
  EXPECT_EQ(kept.back(), kBatches - 1);
  EXPECT_EQ(std::ranges::count(kept, kFullest), 1);
  for (size_t i = 1; i < kept.size(); ++i) {
    EXPECT_LE(kept[i] - kept[i - 1], 16);
  }
}

TEST_F(RunTest, AnEmptyLoadEndsAtOnce) {
  ScriptedTarget target(&clock_, 1, AlwaysSteady(Ms(100), Ms(20)));
  const RunResult result = folio::Run({}, target, clock_, {});
  EXPECT_TRUE(result.broke_off.ok());
  EXPECT_THAT(result.records, IsEmpty());
  EXPECT_THAT(result.batches, IsEmpty());
  EXPECT_EQ(clock_.Now(), RunStart());
}

// Waiting is waiting: no turn of the run's loop is for nothing.
TEST_F(RunTest, WaitsAreFew) {
  ScriptedTarget target(&clock_, 5, AlwaysSteady(Ms(10), Ms(1)));
  std::vector<LoadRequest> load;
  for (int i = 0; i < 100; ++i) {
    load.push_back({.arrival = Ms(10) * i, .output_tokens = 100});
  }
  folio::Run(load, target, clock_, {});
  // At most one for each send and each end, and five a second.
  const auto seconds = absl::ToInt64Seconds(clock_.Now() - RunStart()) + 1;
  EXPECT_LE(clock_.num_waits(), 200 + 5 * seconds);
}

}  // namespace
}  // namespace folio
