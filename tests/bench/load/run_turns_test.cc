// Runs of loads with conversations, samples, cancels and deadlines.

#include <string>

#include "bench/load/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/bench/load/run_support.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RunTurnsTest : public testing::Test {
 protected:
  // The script of every request.
  RunResult RunWith(std::function<Script(const TargetRequest&)> script,
                    const RunOptions& options = {}) {
    target_.emplace(&clock_, 10, std::move(script));
    return folio::Run(load_, *target_, clock_, options);
  }

  const ScriptedTarget::Seen& SeenOf(size_t index) {
    return target_->seen().at(index);
  }

  VirtualRunClock clock_{RunStart()};
  std::optional<ScriptedTarget> target_;
  std::vector<LoadRequest> load_;
};

std::vector<TokenId> Joined(std::vector<std::vector<TokenId>> parts) {
  std::vector<TokenId> all;
  for (const auto& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST_F(RunTurnsTest, ATurnSendsWhatWasSaid) {
  load_ = {{.arrival = Ms(100),
            .prompt_tokens = 4,
            .output_tokens = 3,
            .token_seed = 1,
            .prefix_seed = 9,
            .prefix_tokens = 2},
           {.prompt_tokens = 5,
            .output_tokens = 2,
            .token_seed = 2,
            .previous = 0,
            .think_time = Ms(700)},
           {.prompt_tokens = 6,
            .output_tokens = 1,
            .token_seed = 3,
            .previous = 1,
            .think_time = Ms(0)}};
  // Two samples; the first one is what the conversation goes on from.
  const RunResult result = RunWith(
      [](const TargetRequest& request) {
        const TokenId id = request.name.back() - '0';
        return Script{.messages = {{.time = Ms(30), .tokens = {id, 70}},
                                   {.time = Ms(35),
                                    .sample = 1,
                                    .num_tokens = 2,
                                    .tokens = {55, 56}},
                                   {.time = Ms(40), .tokens = {71}}},
                      .end = Ms(50)};
      },
      {.vocab_size = 50});
  // 100 to 150, 700 to think, 850 to 900, and at once.
  EXPECT_THAT(SendTimes(*target_), ElementsAre(Ms(100), Ms(850), Ms(900)));
  EXPECT_THAT(ArrivalsOf(result), ElementsAre(Ms(100), Ms(850), Ms(900)));
  const std::vector<TokenId> first = PromptTokens(load_[0], 50);
  const std::vector<TokenId> second =
      Joined({first, {0, 70, 71}, RandomTokens(2, 5, 50)});
  const std::vector<TokenId> third =
      Joined({second, {1, 70, 71}, RandomTokens(3, 6, 50)});
  EXPECT_EQ(SeenOf(0).request.prompt, Prompt(first));
  EXPECT_EQ(SeenOf(1).request.prompt, Prompt(second));
  EXPECT_EQ(SeenOf(2).request.prompt, Prompt(third));
  EXPECT_EQ(result.records[2].prompt_tokens, 6 + 3 + 5 + 3 + 6);
}

TEST_F(RunTurnsTest, WithoutIdsTheOutputIsDrawn) {
  load_ = {{.prompt_tokens = 4, .output_tokens = 3, .token_seed = 1},
           {.prompt_tokens = 2, .token_seed = 2, .previous = 0}};
  const auto steady = [](const TargetRequest& request) {
    return Steady(request, Ms(10), Ms(10));
  };
  RunWith(steady, {.vocab_size = 1000});
  ASSERT_THAT(target_->seen(), SizeIs(2));
  const auto prompt = std::get<std::vector<TokenId>>(SeenOf(1).request.prompt);
  ASSERT_THAT(prompt, SizeIs(4 + 3 + 2));
  EXPECT_EQ(std::vector(prompt.begin(), prompt.begin() + 4),
            RandomTokens(1, 4, 1000));
  EXPECT_EQ(std::vector(prompt.begin() + 7, prompt.end()),
            RandomTokens(2, 2, 1000));
  // As if there were ids; but neither its own prompt nor the next one.
  const std::vector output(prompt.begin() + 4, prompt.begin() + 7);
  EXPECT_NE(output, RandomTokens(1, 3, 1000));
  // The same in every run.
  clock_ = VirtualRunClock(RunStart());
  RunWith(steady, {.vocab_size = 1000});
  EXPECT_EQ(SeenOf(1).request.prompt, Prompt(prompt));
}

TEST_F(RunTurnsTest, ATextGoesOnAsAText) {
  load_ = {{.prompt_text = "Who"},
           {.prompt_text = " else", .previous = 0},
           {.prompt_text = "?", .previous = 1}};
  RunWith([](const TargetRequest&) {
    return Script{.messages = {{.time = Ms(1), .text = " is"},
                               {.time = Ms(2), .sample = 1, .text = "NO"},
                               {.time = Ms(3), .text = " it"}},
                  .end = Ms(3)};
  });
  ASSERT_THAT(target_->seen(), SizeIs(3));
  EXPECT_EQ(SeenOf(1).request.prompt, Prompt("Who is it else"));
  EXPECT_EQ(SeenOf(2).request.prompt, Prompt("Who is it else is it?"));
}

TEST_F(RunTurnsTest, AFailedTurnGivesUpTheLaterOnes) {
  load_ = {{.arrival = Ms(300)},
           {.previous = 0},
           {.previous = 1, .think_time = Ms(20)},
           {.previous = 2},
           {.arrival = Ms(310)},
           {.previous = 4}};
  const RunResult result = RunWith([](const TargetRequest& request) {
    Script script = Steady(request, Ms(50), Ms(0));
    if (request.name == "load-1") script.status = absl::InternalError("broken");
    return script;
  });
  EXPECT_TRUE(result.broke_off.ok());
  EXPECT_THAT(target_->seen(), SizeIs(4));
  EXPECT_TRUE(result.records[0].status.ok());
  EXPECT_EQ(result.records[1].status, absl::InternalError("broken"));
  for (const size_t i : {2, 3}) {
    const RequestRecord& record = result.records[i];
    EXPECT_TRUE(absl::IsAborted(record.status)) << record.status;
    EXPECT_THAT(record.status.message(), HasSubstr("the turn before it"));
    EXPECT_EQ(record.sent, std::nullopt);
    EXPECT_EQ(record.end, std::nullopt);
    EXPECT_FALSE(record.end_was_asked_for);
    // When that was known, 300 + 2 * 50; not before the load began.
    EXPECT_EQ(record.arrival, Ms(400));
  }
  EXPECT_TRUE(result.records[5].status.ok());
  const LoadMetrics metrics = Measure(result.records);
  EXPECT_EQ(metrics.failed, 1);
  EXPECT_EQ(metrics.not_sent, 2);
  EXPECT_EQ(metrics.duration, Ms(410 - 300));
}

// What the load itself ends is no failure, and what hangs on it is none.
TEST_F(RunTurnsTest, TurnsAfterACancelAreAskedFor) {
  load_ = {{.output_tokens = 9, .cancel_after = Ms(55)},
           {.previous = 0},
           {.previous = 1},
           {.output_tokens = 9, .deadline = Ms(65)},
           {.previous = 3}};
  const RunResult result = RunWith([](const TargetRequest& request) {
    return Steady(request, Ms(10), Ms(10));
  });
  EXPECT_THAT(target_->seen(), SizeIs(2));
  EXPECT_TRUE(absl::IsCancelled(result.records[0].status));
  EXPECT_EQ(result.records[0].end, Ms(55));
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.records[3].status));
  EXPECT_EQ(result.records[3].end, Ms(65));
  for (const RequestRecord& record : result.records) {
    EXPECT_TRUE(record.end_was_asked_for);
  }
  EXPECT_EQ(Measure(result.records).failed, 0);
}

// A target's own CANCELLED or DEADLINE_EXCEEDED was asked for by nobody.
TEST_F(RunTurnsTest, OthersDidNotAskForTheirEnd) {
  load_ = {{}, {}, {.cancel_after = Ms(500)}, {.deadline = Ms(500)}};
  const RunResult result = RunWith([](const TargetRequest& request) {
    Script script = Steady(request, Ms(10), Ms(10));
    script.status = request.name == "load-0" ? absl::CancelledError("")
                                             : absl::DeadlineExceededError("");
    if (request.name == "load-3") script.status = absl::InternalError("");
    return script;
  });
  for (const RequestRecord& record : result.records) {
    EXPECT_FALSE(record.end_was_asked_for);
    EXPECT_EQ(record.end, Ms(10));
  }
  EXPECT_EQ(Measure(result.records).failed, 4);
}

// Think time counts from the end, however late the client looks.
TEST_F(RunTurnsTest, ALateClientDoesNotThinkLonger) {
  load_ = {{}, {.previous = 0, .think_time = Ms(100)}};
  clock_.SetLateness(Ms(30));
  const RunResult result = RunWith([](const TargetRequest& request) {
    return Steady(request, Ms(50), Ms(0));
  });
  EXPECT_THAT(ArrivalsOf(result), ElementsAre(Ms(0), Ms(150)));
  EXPECT_THAT(result.send_lags, ElementsAre(Ms(0), Ms(30)));
  EXPECT_EQ(TimeToFirstToken(result.records[1]), Ms(80));
}

// Conversations share the slots of a closed loop with everyone, and don't hold
// one while they think.
TEST_F(RunTurnsTest, TurnsInAClosedLoop) {
  load_ = {{}, {.previous = 0, .think_time = Ms(80)}, {}, {}};
  const RunResult result = RunWith(
      [](const TargetRequest& request) {
        return Steady(request, Ms(50), Ms(0));
      },
      {.concurrency = 1});
  // 0 until 50, 2 until 100, 3 until 150; turn 1 is due at 130.
  EXPECT_THAT(ArrivalsOf(result), ElementsAre(Ms(0), Ms(150), Ms(50), Ms(100)));
  EXPECT_EQ(target_->max_live(), 1);
}

TEST_F(RunTurnsTest, ALaterTurnWaitsForItsTimeInAClosedLoop) {
  load_ = {{}, {.previous = 0, .think_time = Ms(80)}};
  const RunResult result = RunWith(
      [](const TargetRequest& request) {
        return Steady(request, Ms(50), Ms(0));
      },
      {.concurrency = 4});
  EXPECT_THAT(ArrivalsOf(result), ElementsAre(Ms(0), Ms(130)));
  EXPECT_THAT(result.send_lags, ElementsAre(Ms(0), Ms(0)));
}

// Gaps are those within a sample, and TTFT is the first token of any.
TEST_F(RunTurnsTest, SamplesHaveTheirOwnGaps) {
  load_ = {{.output_tokens = 3, .n = 2}};
  const RunResult result = RunWith([](const TargetRequest&) {
    return Script{.messages = {{.time = Ms(20), .sample = 1},
                               {.time = Ms(30), .sample = 0},
                               {.time = Ms(45), .sample = 1},
                               {.time = Ms(70), .sample = 0},
                               {.time = Ms(85), .sample = 0}},
                  .end = Ms(90)};
  });
  const RequestRecord& record = result.records[0];
  EXPECT_THAT(record.samples, ElementsAre(ElementsAre(Ms(30), Ms(70), Ms(85)),
                                          ElementsAre(Ms(20), Ms(45))));
  EXPECT_THAT(Gaps(record), ElementsAre(Ms(40), Ms(15), Ms(25)));
  EXPECT_EQ(TimeToFirstToken(record), Ms(20));
  EXPECT_EQ(TimePerOutputToken(record), Ms(90 - 20) / 2);
  EXPECT_EQ(OutputTokens(record), 5);
}

// It is too late by then: nothing happens.
TEST_F(RunTurnsTest, ACancelAfterTheEndDoesNothing) {
  load_ = {{.cancel_after = Ms(60)}, {.arrival = Ms(200)}};
  const RunResult result = RunWith([](const TargetRequest& request) {
    return Steady(request, Ms(50), Ms(0));
  });
  EXPECT_TRUE(result.records[0].status.ok());
  EXPECT_FALSE(result.records[0].end_was_asked_for);
  EXPECT_TRUE(result.records[1].status.ok());
}

// Both count from the scheduled arrival, not from when a late client sent it.
TEST_F(RunTurnsTest, CancelsAndDeadlinesCountFromTheArrival) {
  load_ = {{.arrival = Ms(100), .output_tokens = 9, .cancel_after = Ms(90)},
           {.arrival = Ms(100), .output_tokens = 9, .deadline = Ms(70)}};
  clock_.SetLateness(Ms(25));
  const RunResult result = RunWith([](const TargetRequest& request) {
    return Steady(request, Ms(30), Ms(30));
  });
  EXPECT_EQ(SeenOf(0).sent, RunStart() + Ms(125));
  EXPECT_EQ(SeenOf(1).request.deadline, RunStart() + Ms(170));
  EXPECT_EQ(result.records[1].end, Ms(70));
  // Woken by the other's end at 170, so at 195.
  EXPECT_EQ(result.records[0].end, Ms(95));
}

// What is cancelled at its arrival was sent before.
TEST_F(RunTurnsTest, ACancelAtOnce) {
  load_ = {{.arrival = Ms(10), .cancel_after = Ms(0)}};
  const RunResult result = RunWith([](const TargetRequest& request) {
    return Steady(request, Ms(30), Ms(30));
  });
  EXPECT_EQ(result.records[0].sent, Ms(10));
  EXPECT_EQ(result.records[0].end, Ms(0));
  EXPECT_TRUE(result.records[0].end_was_asked_for);
  EXPECT_THAT(result.records[0].samples, IsEmpty());
}

}  // namespace
}  // namespace folio
