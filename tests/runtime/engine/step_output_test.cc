// What a turn says about itself: its times, and the state that it leaves.

#include "runtime/engine/step_output.h"

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/scripted_engine.h"

namespace folio {
namespace {

constexpr absl::Duration kForward = absl::Milliseconds(50);
constexpr absl::Duration kLogits = absl::Milliseconds(7);
constexpr absl::Duration kSample = absl::Milliseconds(3);
constexpr absl::Duration kText = absl::Milliseconds(2);

// Each part of a step moves the clock by an amount of its own.
class SlowModel final : public Model {
 public:
  SlowModel(std::unique_ptr<Model> model, ManualClock* clock)
      : model_(std::move(model)), clock_(clock) {}
  const ModelInfo& info() const override { return model_->info(); }
  void Forward(const StepInput& input, KvStorage& storage) override {
    clock_->Advance(kForward);
    model_->Forward(input, storage);
  }
  const ColumnBlocks& Logits(int32_t first, int32_t count) override {
    clock_->Advance(kLogits);
    return model_->Logits(first, count);
  }

 private:
  const std::unique_ptr<Model> model_;
  ManualClock* const clock_;
};

class SlowExecutor final : public Executor {  // The sampler's.
 public:
  explicit SlowExecutor(ManualClock* clock) : clock_(clock) {}
  int num_workers() const override { return serial_.num_workers(); }
  void ParallelFor(int num_tasks,
                   absl::FunctionRef<void(int, int)> body) override {
    clock_->Advance(kSample);
    serial_.ParallelFor(num_tasks, body);
  }

 private:
  SerialExecutor serial_;
  ManualClock* const clock_;
};

class SlowTokenizer final : public Tokenizer {
 public:
  explicit SlowTokenizer(ManualClock* clock) : clock_(clock) {}
  const TokenizerInfo& info() const override { return bytes_.info(); }
  absl::StatusOr<std::vector<TokenId>> Encode(
      std::string_view text, const EncodeOptions& options) const override {
    return bytes_.Encode(text, options);
  }
  void AppendBytes(TokenId token, std::string& bytes) const override {
    clock_->Advance(kText);
    bytes_.AppendBytes(token, bytes);
  }

 private:
  ByteTokenizer bytes_{ScriptedModel::kVocabSize};
  ManualClock* const clock_;
};

TEST(StepOutput, TellsTheTimesOfTheParts) {
  ManualClock clock(absl::UnixEpoch());
  SlowExecutor executor(&clock);
  const SlowTokenizer tokenizer(&clock);
  EngineOptions options = ScriptedEngine::Options(20);
  options.scheduler.max_batch_tokens = 200;
  auto model = std::make_unique<ScriptedModel>(ScriptedEngine::kContext,
                                               options.model_limits());
  auto engine = Engine::Create(
      options, std::make_unique<SlowModel>(std::move(model), &clock),
      &tokenizer, &clock, &executor);
  ASSERT_TRUE(engine.ok()) << engine.status();
  // 99 rows of logits score the prompt and one samples: two tiles of 64.
  Request request =
      ScriptedEngine::MakeRequest(std::vector<TokenId>(100, 5), 2);
  request.sampling.logprobs = 0;
  request.sampling.prompt_logprobs = true;
  ASSERT_TRUE((*engine)->Prepare(request).ok());
  ASSERT_TRUE((*engine)->Submit(std::move(request)).ok());

  StepOutput output;
  const absl::Time start = clock.Now();
  (*engine)->Step(output);
  ASSERT_TRUE(output.stepped);
  EXPECT_EQ(output.report.start, start);
  EXPECT_EQ(output.report.plan_duration, absl::ZeroDuration());
  EXPECT_EQ(output.report.forward_duration, kForward + 2 * kLogits);
  EXPECT_EQ(output.report.sample_duration, 2 * kSample);
  EXPECT_EQ(output.report.commit_duration, kText);
  EXPECT_EQ(output.report.duration,
            kForward + 2 * kLogits + 2 * kSample + kText);
  EXPECT_EQ(output.time, start + output.report.duration);

  // A decode has one row; nothing is left from the step before.
  const absl::Time second = clock.Now();
  (*engine)->Step(output);
  EXPECT_EQ(output.report.forward_duration, kForward + kLogits);
  EXPECT_EQ(output.report.sample_duration, kSample);
  EXPECT_EQ(output.report.commit_duration, kText);
  EXPECT_EQ(output.time, second + output.report.duration);

  clock.Advance(kText);
  (*engine)->Step(output);
  EXPECT_FALSE(output.stepped);
  EXPECT_EQ(output.time, clock.Now());
}

// Prefixes are hashed where they are looked up, in Plan and Apply, and where
// they are registered, in Commit; nothing else takes time here.
ManualClock* hash_clock = nullptr;
uint64_t SlowHash(uint64_t before, std::span<const TokenId> tokens) {
  hash_clock->Advance(absl::Milliseconds(1));
  return HashTokens(before, tokens);
}

TEST(StepOutput, TellsTheTimesOfPlanAndCommit) {
  EngineOptions options = ScriptedEngine::Options(20);
  options.prefix_hash = SlowHash;
  ScriptedEngine engine(options);
  hash_clock = &engine.clock();
  engine.Submit(ScriptedEngine::MakeRequest(std::vector<TokenId>(32, 5), 2));
  const absl::Time start = engine.clock().Now();
  StepOutput output;
  engine->Step(output);
  EXPECT_GT(output.report.plan_duration, absl::ZeroDuration());
  EXPECT_GT(output.report.commit_duration, absl::ZeroDuration());
  EXPECT_EQ(output.report.plan_duration + output.report.commit_duration,
            engine.clock().Now() - start);
  EXPECT_EQ(output.report.duration, engine.clock().Now() - start);

  // A decode looks nothing up, and completes no page.
  engine->Step(output);
  EXPECT_EQ(output.report.plan_duration, absl::ZeroDuration());
  EXPECT_EQ(output.report.commit_duration, absl::ZeroDuration());
}

TEST(StepOutput, HasTheStateAfterTheTurn) {
  ScriptedEngine engine(ScriptedEngine::Options(20));
  const EngineLoad idle = {.pages_total = 20, .pages_free = 20};
  EXPECT_EQ(engine->load(), idle);
  StepOutput output;
  engine->Step(output);
  EXPECT_EQ(output.load, idle);
  EXPECT_TRUE(output.empty());

  // 4 run at most; each takes two pages for 17 tokens. (32 tokens a step: one
  // prompt, and 15 tokens of the next.)
  for (TokenId t = 0; t < 5; ++t) {
    engine.Submit(ScriptedEngine::MakeRequest(std::vector<TokenId>(17, t), 30));
  }
  engine->Step(output);
  EXPECT_EQ(output.load, (EngineLoad{.sequences_running = 2,
                                     .sequences_waiting = 3,
                                     .pages_total = 20,
                                     .pages_in_use = 3,
                                     .pages_free = 17}));
  for (int i = 0; i < 3; ++i) engine->Step(output);
  EXPECT_EQ(output.load, (EngineLoad{.sequences_running = 4,
                                     .sequences_waiting = 1,
                                     .pages_total = 20,
                                     .pages_in_use = 8,
                                     .pages_free = 12}));

  // The report of the last step still has the pages; the load does not. Each
  // sequence has K/V of 46 tokens: two full pages that can be found again.
  while (engine->Step(output)) {
  }
  ASSERT_TRUE(output.stepped);
  EXPECT_EQ(output.report.sequences_running, 1);
  EXPECT_EQ(output.report.memory.pages_in_use, 3);
  EXPECT_EQ(
      output.load,
      (EngineLoad{.pages_total = 20, .pages_cached = 10, .pages_free = 10}));
}

TEST(StepOutput, IsHandedOnWhenOnlyTheStateChanges) {
  ScriptedEngine engine(ScriptedEngine::Options(20));
  engine.RunOne(ScriptedEngine::MakeRequest(std::vector<TokenId>(32, 5), 1));
  StepOutput output;
  engine->Step(output);
  EXPECT_EQ(output.load.pages_cached, 2);
  EXPECT_TRUE(output.empty());
  engine->FlushPrefixCache();
  engine->Step(output);
  EXPECT_EQ(output.load.pages_cached, 0);
  EXPECT_FALSE(output.empty());
  engine->Step(output);
  EXPECT_TRUE(output.empty());
}

// The prompt tokens of each step of all that is live.
std::vector<int32_t> PromptTokens(Engine& engine) {
  std::vector<int32_t> counts;
  StepOutput output;
  bool has_work = true;
  while (has_work) {
    has_work = engine.Step(output);
    if (output.stepped) counts.push_back(output.report.prompt_tokens);
  }
  return counts;
}

TEST(StepOutput, CountsAPromptWhereItIsComplete) {
  ScriptedEngine engine(ScriptedEngine::Options(20));
  // 80 tokens in steps of 32: complete with the third.
  engine.Submit(ScriptedEngine::MakeRequest(std::vector<TokenId>(80, 5), 2));
  EXPECT_EQ(PromptTokens(*engine), (std::vector<int32_t>{0, 0, 80, 0}));
  // The same again: 64 are in the cache, and it counts whole.
  engine.Submit(ScriptedEngine::MakeRequest(std::vector<TokenId>(80, 5), 2));
  EXPECT_EQ(PromptTokens(*engine), (std::vector<int32_t>{80, 0}));
  // Samples share one prompt.
  Request samples = ScriptedEngine::MakeRequest({1, 2, 3}, 2);
  samples.n = 3;
  engine.Submit(std::move(samples));
  EXPECT_EQ(PromptTokens(*engine), (std::vector<int32_t>{3, 0}));
  // One whose prompt is all that is wanted.
  engine.Submit(ScriptedEngine::MakeRequest({1, 2, 3, 4}, 0));
  EXPECT_EQ(PromptTokens(*engine), (std::vector<int32_t>{4}));
}

TEST(StepOutput, CountsNoPromptTwice) {
  EngineOptions options = ScriptedEngine::Options(20);
  options.prefix_cache = false;
  ScriptedEngine engine(options);
  const RequestId id = engine.Submit(
      ScriptedEngine::MakeRequest(std::vector<TokenId>(40, 5), 3));
  std::vector<int32_t> counts;
  StepOutput output;
  // Before it is complete, and when it has been.
  for (int step = 1; engine->Step(output); ++step) {
    if (output.stepped) counts.push_back(output.report.prompt_tokens);
    if (step == 1 || step == 5) engine->scheduler().RequestPreemption(id);
  }
  EXPECT_EQ(counts, (std::vector<int32_t>{0, 0, 40, 0, 0}));
}

TEST(StepOutput, TellsFirstTokensAndHowManyThereAre) {
  ScriptedEngine engine(ScriptedEngine::Options(20));
  const auto step = [&](int seconds, StepOutput& output) {
    engine.clock().Advance(absl::Seconds(seconds));
    engine->Step(output);
    return output.report.times_to_first_token;
  };
  StepOutput output;
  using Times = std::vector<absl::Duration>;
  engine.Submit(ScriptedEngine::MakeRequest(std::vector<TokenId>(40, 5), 3));
  EXPECT_EQ(step(1, output), Times{});
  EXPECT_EQ(output.report.generated_tokens, 0);
  EXPECT_EQ(step(2, output), Times{absl::Seconds(3)});
  EXPECT_EQ(output.report.generated_tokens, 1);
  // Three samples have one first token, beside the other's second.
  Request samples = ScriptedEngine::MakeRequest({1, 2, 3}, 2);
  samples.n = 3;
  engine.Submit(std::move(samples));
  EXPECT_EQ(step(4, output), Times{absl::Seconds(4)});
  EXPECT_EQ(output.report.generated_tokens, 4);
  EXPECT_EQ(step(8, output), Times{});
  EXPECT_EQ(output.report.generated_tokens, 4);
  EXPECT_EQ(output.load.sequences_running, 0);
}

}  // namespace
}  // namespace folio
