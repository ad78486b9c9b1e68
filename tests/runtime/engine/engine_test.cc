// The engine, driven by hand on a scripted model.

#include "runtime/engine/engine.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/tokenizer/byte_tokenizer.h"
#include "tests/support/engine_driver.h"
#include "tests/support/scripted_model.h"

namespace folio {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kContext = 200;
constexpr int64_t kTokenBytes = 2 * sizeof(float);

std::vector<TokenId> Expected(std::vector<TokenId> tokens, int count) {
  const size_t prompt = tokens.size();
  for (int i = 0; i < count; ++i) {
    tokens.push_back(ScriptedModel::NextToken(tokens));
  }
  return {tokens.begin() + prompt, tokens.end()};
}

Request MakeRequest(std::vector<TokenId> prompt, int32_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  return request;
}

class EngineTest : public testing::Test {
 protected:
  static EngineOptions Options(int32_t num_pages) {
    EngineOptions options;
    options.page_size = 16;
    options.kv_pool_bytes = num_pages * options.page_size * kTokenBytes;
    options.scheduler = {.max_batch_tokens = 32, .max_batch_sequences = 4};
    return options;
  }

  void Make(const EngineOptions& options) {
    auto engine = Engine::Create(
        options,
        std::make_unique<ScriptedModel>(kContext, options.model_limits()),
        &tokenizer_, &clock_, &executor_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  Generated RunOne(Request request) {
    return RunToEnd(*engine_, {std::move(request)})[0];
  }

  ManualClock clock_{absl::UnixEpoch()};
  SerialExecutor executor_;
  ByteTokenizer tokenizer_{ScriptedModel::kVocabSize};
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineTest, ExactCountsOfTokens) {
  Make(Options(20));
  for (int count : {0, 1, 2, 3}) {
    const Generated result = RunOne(MakeRequest({5, 6}, count));
    EXPECT_EQ(result.tokens, Expected({5, 6}, count));
    EXPECT_EQ(result.finish_reason, FinishReason::kLength);
    EXPECT_EQ(result.usage.prompt_tokens, 2);
    EXPECT_EQ(result.usage.generated_tokens, count);
    EXPECT_EQ(result.num_terminal_events, 1);
  }
}

TEST_F(EngineTest, NotANumberFailsThatRequestAlone) {
  Make(Options(20));
  const std::vector<Generated> results =
      RunToEnd(*engine_, {MakeRequest({1, 2}, 20),
                          MakeRequest({1, ScriptedModel::kPoison}, 20),
                          MakeRequest({3, 4}, 20)});
  EXPECT_EQ(results[0].tokens, Expected({1, 2}, 20));
  EXPECT_EQ(results[2].tokens, Expected({3, 4}, 20));
  EXPECT_EQ(results[1].finish_reason, FinishReason::kError);
  EXPECT_TRUE(results[1].tokens.empty());
  EXPECT_EQ(engine_->scheduler().cache().num_available(), 20);
}

TEST_F(EngineTest, EmptyPromptWithoutBosIsRefused) {
  Make(Options(20));
  Request request = MakeRequest({}, 5);
  EXPECT_THAT(std::string(engine_->Prepare(request).message()),
              HasSubstr("BOS"));
}

TEST_F(EngineTest, EosStopsUnlessIgnored) {
  Make(Options(20));
  // Found by trying prompts: one whose fourth token or so is EOS.
  std::vector<TokenId> prompt = {0, 0};
  std::vector<TokenId> all;
  size_t eos = 0;
  for (TokenId t = 0; t < 200 && (eos == 0 || eos > 40); ++t) {
    prompt[1] = t;
    all = Expected(prompt, 60);
    eos = std::find(all.begin(), all.end(), ScriptedModel::kEos) - all.begin();
  }
  ASSERT_LE(eos, 40u);
  Request request = MakeRequest(prompt, 60);
  request.ignore_eos = false;
  const Generated stopped = RunOne(std::move(request));
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
  EXPECT_EQ(stopped.tokens,
            std::vector<TokenId>(all.begin(), all.begin() + eos + 1));
  EXPECT_EQ(RunOne(MakeRequest(prompt, 60)).tokens, all);
}

TEST_F(EngineTest, AbortInTheInboxStillGivesOneTerminalEvent) {
  Make(Options(20));
  Request request = MakeRequest({1, 2}, 20);
  ASSERT_TRUE(engine_->Prepare(request).ok());
  const RequestId id = request.id;
  ASSERT_TRUE(engine_->Submit(std::move(request)).ok());
  engine_->Abort(id);
  engine_->Abort(id);
  StepOutput output;
  EXPECT_FALSE(engine_->Step(output));
  ASSERT_EQ(output.events.size(), 2u);
  EXPECT_EQ(output.events[0].finish_reason, FinishReason::kCancelled);
  EXPECT_TRUE(output.events[1].terminal);
  EXPECT_FALSE(output.stepped);
}

TEST_F(EngineTest, CloseEndsEveryRequestOnce) {
  Make(Options(20));
  for (int i = 0; i < 6; ++i) {
    Request request = MakeRequest({1, 2, i}, 20);
    ASSERT_TRUE(engine_->Prepare(request).ok());
    ASSERT_TRUE(engine_->Submit(std::move(request)).ok());
  }
  StepOutput output;
  EXPECT_TRUE(engine_->Step(output));
  engine_->Close();
  EXPECT_FALSE(engine_->Step(output));
  EXPECT_TRUE(engine_->closed());
  int num_terminal = 0;
  for (const TokenEvent& event : output.events) {
    EXPECT_EQ(event.finish_reason, FinishReason::kShutdown);
    num_terminal += event.terminal;
  }
  EXPECT_EQ(num_terminal, 6);
  Request late = MakeRequest({1}, 1);
  ASSERT_TRUE(engine_->Prepare(late).ok());
  EXPECT_TRUE(absl::IsUnavailable(engine_->Submit(std::move(late))));
}

TEST_F(EngineTest, MissingSeedIsDrawnAndReported) {
  EngineOptions options = Options(20);
  options.seed_source = 1;
  Make(options);
  Request first = MakeRequest({1}, 1);
  Request second = MakeRequest({1}, 1);
  Request given = MakeRequest({1}, 1);
  given.sampling.seed = 77;
  ASSERT_TRUE(engine_->Prepare(first).ok());
  ASSERT_TRUE(engine_->Prepare(second).ok());
  ASSERT_TRUE(engine_->Prepare(given).ok());
  ASSERT_TRUE(first.sampling.seed.has_value());
  EXPECT_NE(first.sampling.seed, second.sampling.seed);
  EXPECT_LT(*first.sampling.seed, uint64_t{1} << 53);
  EXPECT_EQ(given.sampling.seed, 77u);
}

TEST_F(EngineTest, ReportBetweenSteps) {
  Make(Options(20));
  Request request = MakeRequest(std::vector<TokenId>(20, 1), 20);
  ASSERT_TRUE(engine_->Prepare(request).ok());
  ASSERT_TRUE(engine_->Submit(std::move(request)).ok());
  StepOutput output;
  engine_->Step(output);
  BatchReport report;
  ASSERT_TRUE(
      engine_->AskForReport([&](const BatchReport& now) { report = now; }));
  engine_->Step(output);
  output.AnswerCallbacks();
  report.memory.CheckIdentities();
  EXPECT_EQ(report.step, 1);
  EXPECT_EQ(report.sequences_running, 1);
  EXPECT_EQ(report.memory.tokens_held, 20);
  EXPECT_EQ(report.memory.pages_in_use, 2);
  EXPECT_EQ(report.memory.bytes_reserved(), 2 * 16 * kTokenBytes);
  EXPECT_EQ(report.memory.bytes_holding(), 20 * kTokenBytes);
  EXPECT_EQ(report.memory.bytes_waste(), 12 * kTokenBytes);
  EXPECT_EQ(report.memory.bytes_contiguous(), kContext * kTokenBytes);
}

TEST_F(EngineTest, BadOptionsAreRefusedByName) {
  const auto error = [&](const EngineOptions& options) {
    const auto engine = Engine::Create(
        options, std::make_unique<ScriptedModel>(kContext, ModelLimits{1, 1}),
        &tokenizer_, &clock_, &executor_);
    EXPECT_FALSE(engine.ok());
    return std::string(engine.status().message());
  };
  for (int32_t page_size : {0, -8, 4, 12, 256}) {
    EngineOptions options = Options(20);
    options.page_size = page_size;
    EXPECT_THAT(error(options), HasSubstr("page size"));
  }
  EngineOptions options = Options(20);
  options.scheduler.max_batch_tokens = 1;
  EXPECT_THAT(error(options), HasSubstr("max_batch_tokens"));
  options = Options(20);
  options.kv_pool_bytes = 100;
  EXPECT_FALSE(error(options).empty());
}

}  // namespace
}  // namespace folio
