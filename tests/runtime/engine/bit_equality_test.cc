// The third promise: a request's tokens and logprobs are the same to the last
// bit, whatever runs beside it and however its work is cut up.

#include <glog/logging.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/base/philox.h"
#include "runtime/engine/engine.h"
#include "runtime/model/model_registry.h"
#include "runtime/tokenizer/byte_tokenizer.h"
#include "tests/support/engine_driver.h"
#include "tests/support/sanitized.h"
#include "tests/support/test_executors.h"

namespace folio {
namespace {

constexpr int32_t kProbePromptTokens = 83;  // More than one block of 64.
constexpr int32_t kProbeMaxTokens = 24;

struct Circumstances {
  std::string name;
  bool alone = false;  // One probe after the other; else both at once.
  int32_t max_batch_tokens = 256;
  int32_t max_batch_sequences = 16;
  int32_t page_size = 16;
  int num_threads = 1;
  int num_others = 0;
  int64_t preempt_at_step = 0;  // 0: never.
  bool recompute_always = false;
  std::string policy = "fcfs";
  double max_prefill_share = 1.0;
  bool prefix_cache = true;
  // Without prompt logprobs, whose requests share no prefix, and once more with
  // all of the prompt cached.
  bool warm = false;
  // As the first of so many samples.
  int32_t n = 1;
};

// A model as OpenModel takes it, and the types to keep it in.
struct ModelCase {
  const char* spec;
  WantedTypes types;
};

std::unique_ptr<Executor> MakeExecutor(int num_threads) {
  if (num_threads == 1) return std::make_unique<SerialExecutor>();
  return MakeParallelTestExecutor(num_threads);
}

Request RandomRequest(uint64_t seed, int32_t vocab_size, int32_t prompt_tokens,
                      float temperature) {
  Request request;
  for (int32_t i = 0; i < prompt_tokens; ++i) {
    request.prompt.push_back(static_cast<TokenId>(
        UniformDouble(seed, /*stream=*/9, i) * vocab_size));
  }
  request.max_tokens = kProbeMaxTokens;
  request.sampling = {.temperature = temperature,
                      .top_k = 200,
                      .top_p = 0.95f,
                      .seed = seed,
                      .logprobs = 5,
                      .prompt_logprobs = true};
  return request;
}

// Penalties, biases, words that must not come, and a stop string that holds
// text back (and would have to be drawn from a vocabulary to be found).
void ChangeItsLogits(Request& request, int32_t vocab_size) {
  SamplingParams& sampling = request.sampling;
  sampling.min_p = 0.001f;
  sampling.bad_words = {{request.prompt[0]}, {request.prompt[1], 5}};
  sampling.logit_bias = {{vocab_size / 2, 3.0f}, {vocab_size / 3, -3.0f}};
  sampling.repetition_penalty = 1.2f;
  sampling.presence_penalty = 0.3f;
  sampling.frequency_penalty = 0.2f;
  sampling.processed_logprobs = true;
  request.min_tokens = 7;
  request.stop_strings = {"never this text", "e\xEF\xBF\xBD e"};
}

// The probe's results in the circumstances: greedy, then at temperature 1.
std::vector<Generated> RunProbes(const ModelCase& model_case,
                                 const Circumstances& in, Executor* executor) {
  EngineOptions options;
  options.page_size = in.page_size;
  options.scheduler = {.max_batch_tokens = in.max_batch_tokens,
                       .max_batch_sequences = in.max_batch_sequences,
                       .policy = in.policy,
                       .max_prefill_share = in.max_prefill_share,
                       .recompute_always = in.recompute_always};
  options.prefix_cache = in.prefix_cache;
  auto model = OpenModel(model_case.spec, options.model_limits(), executor,
                         model_case.types);
  CHECK(model.ok()) << model.status();
  const int32_t vocab_size = (*model)->info().vocab_size;
  const ByteTokenizer tokenizer(vocab_size);
  const ManualClock clock(absl::UnixEpoch());
  auto engine =
      Engine::Create(options, *std::move(model), &tokenizer, &clock, executor);
  CHECK(engine.ok()) << engine.status();

  std::vector<Request> requests = {
      RandomRequest(1, vocab_size, kProbePromptTokens, 0.0f),
      RandomRequest(2, vocab_size, kProbePromptTokens, 1.0f)};
  for (int i = 0; i < 2; ++i) {
    requests[i].sampling.prompt_logprobs = !in.warm;
    requests[i].n = in.n;
    requests[i].tenant = std::string(1, static_cast<char>('a' + i));
  }
  ChangeItsLogits(requests[1], vocab_size);
  if (in.warm) {
    for (const Generated& cold : RunToEnd(**engine, requests)) {
      CHECK_EQ(cold.usage.cached_tokens, 0);
    }
  }
  if (in.alone) {
    return {RunToEnd(**engine, {requests[0]})[0],
            RunToEnd(**engine, {requests[1]})[0]};
  }
  for (int i = 0; i < in.num_others; ++i) {
    requests.push_back(RandomRequest(100 + i, vocab_size, 5 + 11 * i, 1.0f));
    if (i % 3 == 0) requests.back().sampling.seed.reset();
  }
  std::vector<Generated> results =
      RunToEnd(**engine, std::move(requests),
               [&](int64_t step, const std::vector<Generated>& so_far) {
                 if (step != in.preempt_at_step) return;
                 for (int i = 0; i < 2; ++i) {
                   (*engine)->scheduler().RequestPreemption(so_far[i].id);
                 }
               });
  for (int i = 0; i < 2; ++i) {
    CHECK_EQ(results[i].usage.preemptions > 0, in.preempt_at_step > 0);
    CHECK_EQ(results[i].usage.cached_tokens > 0, in.warm && in.prefix_cache);
  }
  results.resize(2);
  return results;
}

std::vector<Generated> RunProbes(const ModelCase& model_case,
                                 const Circumstances& in) {
  return RunProbes(model_case, in, MakeExecutor(in.num_threads).get());
}

template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

void ExpectSame(const Generated& expected, const Generated& actual) {
  EXPECT_EQ(expected.tokens, actual.tokens);
  EXPECT_TRUE(SameBits(expected.logprobs, actual.logprobs));
  EXPECT_TRUE(SameBits(expected.top, actual.top));
  if (!actual.prompt_logprobs.empty()) {
    EXPECT_TRUE(SameBits(expected.prompt_logprobs, actual.prompt_logprobs));
  }
  EXPECT_EQ(expected.text, actual.text);
}

std::vector<Circumstances> AllCircumstances() {
  return {
      {.name = "two at once"},
      {.name = "with 15 others", .num_others = 14},
      {.name = "chunks of 1", .max_batch_tokens = 1, .max_batch_sequences = 1},
      {.name = "chunks of 16", .max_batch_tokens = 16},
      {.name = "chunks of about 24, with others",
       .max_batch_tokens = 40,
       .num_others = 14},
      {.name = "pages of 8", .page_size = 8},
      {.name = "pages of 128", .page_size = 128},
      {.name = "preempted in prefill",
       .max_batch_tokens = 16,
       .preempt_at_step = 9},
      {.name = "preempted in decode", .preempt_at_step = 8},
      {.name = "recomputed for every token", .recompute_always = true},
      {.name = "cached prompts", .warm = true},
      {.name = "cached prompts, chunks, with others",
       .max_batch_tokens = 40,
       .page_size = 8,
       .num_others = 14,
       .warm = true},
      {.name = "cached prompts, preempted", .preempt_at_step = 5, .warm = true},
      {.name = "first of 3 samples", .n = 3},
      {.name = "first of 3 samples, preempted, pages of 8",
       .page_size = 8,
       .preempt_at_step = 6,
       .n = 3},
      {.name = "by priority, a small share for prompts",
       .num_others = 14,
       .policy = "priority",
       .max_prefill_share = 0.05},
      {.name = "fair, no prefix cache",
       .num_others = 14,
       .policy = "fair",
       .prefix_cache = false},
      {.name = "2 threads", .num_threads = 2},
      {.name = "2 threads, pages of 8, chunks, 15 others, preempted",
       .max_batch_tokens = 40,
       .page_size = 8,
       .num_threads = 2,
       .num_others = 14,
       .preempt_at_step = 20},
  };
}

class BitEqualityTest : public testing::TestWithParam<ModelCase> {};

TEST_P(BitEqualityTest, OutputDoesNotDependOnTheCompany) {
  const std::vector<Generated> alone =
      RunProbes(GetParam(), {.name = "alone", .alone = true});
  for (const Generated& probe : alone) {
    ASSERT_EQ(probe.tokens.size(), size_t{kProbeMaxTokens});
    ASSERT_EQ(probe.logprobs.size(), size_t{kProbeMaxTokens});
    ASSERT_EQ(probe.top.size(), size_t{5 * kProbeMaxTokens});
    ASSERT_EQ(probe.prompt_logprobs.size(), size_t{kProbePromptTokens - 1});
  }
  // A test that could not see a difference would be worth nothing.
  ASSERT_NE(alone[0].tokens, alone[1].tokens);
  for (const Circumstances& circumstances : AllCircumstances()) {
    SCOPED_TRACE(circumstances.name);
    const std::vector<Generated> probes = RunProbes(GetParam(), circumstances);
    ExpectSame(alone[0], probes[0]);
    ExpectSame(alone[1], probes[1]);
  }
}

// Each sample of several says what it would say alone with its seed.
TEST_P(BitEqualityTest, EachSampleIsItsSoloRun) {
  const auto executor = std::make_unique<SerialExecutor>();
  EngineOptions options;
  options.scheduler.max_batch_tokens = 256;
  auto model = OpenModel(GetParam().spec, options.model_limits(),
                         executor.get(), GetParam().types);
  ASSERT_TRUE(model.ok()) << model.status();
  const int32_t vocab_size = (*model)->info().vocab_size;
  const ByteTokenizer tokenizer(vocab_size);
  const ManualClock clock(absl::UnixEpoch());
  const auto engine = Engine::Create(options, *std::move(model), &tokenizer,
                                     &clock, executor.get());
  ASSERT_TRUE(engine.ok()) << engine.status();
  // So hot that even a random model's samples differ.
  Request request = RandomRequest(2, vocab_size, kProbePromptTokens, 30.0f);
  request.sampling.prompt_logprobs = false;
  ChangeItsLogits(request, vocab_size);
  request.n = 4;
  Generated samples = RunToEnd(**engine, {request})[0];
  request.n = 1;
  for (int i = 0; i < 4; ++i) {
    request.sampling.seed = 2 + i;
    (*engine)->FlushPrefixCache();
    const Generated alone = RunToEnd(**engine, {request})[0];
    EXPECT_EQ(alone.usage.cached_tokens, 0);
    ExpectSame(alone, i == 0 ? samples : samples.others[i - 1]);
  }
  EXPECT_NE(samples.tokens, samples.others[0].tokens);
}

constexpr WantedTypes kBf16{ElementType::kBf16, ElementType::kBf16};

INSTANTIATE_TEST_SUITE_P(EmbeddedModel, BitEqualityTest,
                         testing::Values(ModelCase{""}, ModelCase{"", kBf16}));

// Each family, and each once more in bf16. Mistral's window is shorter than the
// probe's prompt, so its pages leave while it runs.
INSTANTIATE_TEST_SUITE_P(
    Families, BitEqualityTest,
    testing::Values(ModelCase{"random:hidden=96,heads=3"},
                    ModelCase{"random:arch=llama,hidden=96,heads=6"},
                    ModelCase{"random:arch=mistral,window=40"},
                    ModelCase{"random:arch=qwen2"},
                    ModelCase{"random:arch=qwen3,head_dim=24"},
                    ModelCase{"random:arch=gpt2,hidden=96,heads=3"}));
INSTANTIATE_TEST_SUITE_P(
    FamiliesInBf16, BitEqualityTest,
    testing::Values(ModelCase{"random:hidden=96,heads=3", kBf16},
                    ModelCase{"random:arch=llama,hidden=96,heads=6", kBf16},
                    ModelCase{"random:arch=mistral,window=40", kBf16},
                    ModelCase{"random:arch=qwen2", kBf16},
                    ModelCase{"random:arch=qwen3,head_dim=24", kBf16},
                    ModelCase{"random:arch=gpt2,hidden=96,heads=3", kBf16},
                    // K/V of another type than the weights.
                    ModelCase{"random:arch=mistral,window=40",
                              {ElementType::kF32, ElementType::kBf16}}));

// Integers: weights of int8 and int4, K/V of int8, and each with something
// else.
constexpr WantedTypes kInt8{ElementType::kInt8, ElementType::kInt8};
constexpr WantedTypes kInt4{ElementType::kInt4, ElementType::kBf16};

INSTANTIATE_TEST_SUITE_P(
    EmbeddedModelInIntegers, BitEqualityTest,
    testing::Values(ModelCase{"", kInt8}, ModelCase{"", kInt4},
                    ModelCase{"", {ElementType::kF32, ElementType::kInt8}},
                    ModelCase{"", {ElementType::kInt8, ElementType::kF32}}));
INSTANTIATE_TEST_SUITE_P(
    FamiliesInIntegers, BitEqualityTest,
    testing::Values(ModelCase{"random:hidden=96,heads=3", kInt8},
                    ModelCase{"random:arch=llama,hidden=96,heads=6", kInt4},
                    ModelCase{"random:arch=mistral,window=40", kInt8},
                    ModelCase{"random:arch=mistral,window=40", kInt4},
                    ModelCase{"random:arch=qwen2", kInt4},
                    ModelCase{"random:arch=qwen3,head_dim=24", kInt8},
                    ModelCase{"random:arch=gpt2,hidden=96,heads=3", kInt8}));

constexpr ModelCase kLargeModel{
    kSanitized ? "random:vocab=2000,hidden=288,heads=9,layers=2"
               : "random:vocab=50257,hidden=576,heads=9,layers=2"};

INSTANTIATE_TEST_SUITE_P(LargeModel, BitEqualityTest,
                         testing::Values(kLargeModel));

// (On a busy machine one worker of a real pool may take all the tasks.)
TEST(BitEqualityOfWorkersTest, BothComputeAPartOfEveryProduct) {
  const Circumstances with_others = {.name = "with 15 others",
                                     .num_others = 14};
  SerialExecutor serial;
  const std::vector<Generated> alone =
      RunProbes(kLargeModel, with_others, &serial);
  PinnedExecutor both(2);
  const std::vector<Generated> shared =
      RunProbes(kLargeModel, with_others, &both);
  ExpectSame(alone[0], shared[0]);
  ExpectSame(alone[1], shared[1]);
  // In a step, each of 2 layers has four products, attention apart; then comes
  // lm_head. Nothing that is given to the executor has a single task, save the
  // sampler's work in steps that look at one row of logits.
  EXPECT_GE(both.num_shared_calls(), (2 * 4 + 1) * kProbeMaxTokens);
  EXPECT_LE(both.num_unshared_calls(), kProbeMaxTokens);
}

}  // namespace
}  // namespace folio
