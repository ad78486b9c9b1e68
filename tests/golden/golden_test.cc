// Folio against PyTorch, on a model small enough to be kept in the tree.
// make_tiny_causal_lm.py makes it and the numbers.

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/engine/engine.h"
#include "runtime/model/model_registry.h"
#include "runtime/tokenizer/byte_tokenizer.h"
#include "runtime/weights/json_file.h"
#include "tests/support/engine_driver.h"

namespace folio {
namespace {

// PyTorch and Folio both compute in f32 and add in different orders; the
// reference itself is rounded to 6 digits.
constexpr double kTolerance = 1e-4;

constexpr char kModel[] = FOLIO_SOURCE_DIR "/tests/golden/tiny-causal-lm";

double LogSumExpOf(const std::vector<double>& logits) {
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  return std::log(sum);
}

class GoldenTest : public testing::TestWithParam<bool> {};

TEST_P(GoldenTest, LogprobsAndTokensAreThoseOfPyTorch) {
  const auto cases = ReadJsonFile(std::string(kModel) + "/cases.json");
  ASSERT_TRUE(cases.ok()) << cases.status();
  SerialExecutor executor;
  EngineOptions options;
  options.scheduler = {.max_batch_tokens = 32,
                       .max_batch_sequences = 4,
                       .recompute_always = GetParam()};
  auto model = OpenModel(kModel, options.model_limits(), &executor);
  ASSERT_TRUE(model.ok()) << model.status();
  const ByteTokenizer tokenizer((*model)->info().vocab_size);
  const ManualClock clock(absl::UnixEpoch());
  auto engine =
      Engine::Create(options, *std::move(model), &tokenizer, &clock, &executor);
  ASSERT_TRUE(engine.ok()) << engine.status();

  std::vector<Request> requests;
  for (const auto& one : *cases) {
    Request request;
    request.prompt = one["prompt"].get<std::vector<TokenId>>();
    request.max_tokens = static_cast<int32_t>(one["greedy"].size());
    request.sampling = {.logprobs = 1, .prompt_logprobs = true};
    requests.push_back(std::move(request));
  }
  const std::vector<Generated> results =
      RunToEnd(**engine, std::move(requests));

  ASSERT_FALSE(results.empty());
  for (size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i);
    const auto& expected = (*cases)[i];
    // Otherwise a rounding could turn a token and all that follow it.
    ASSERT_GT(expected["greedy_min_margin"].get<double>(), 2 * kTolerance);
    EXPECT_EQ(results[i].tokens,
              expected["greedy"].get<std::vector<TokenId>>());
    const auto logits = expected["last_logits"].get<std::vector<double>>();
    EXPECT_NEAR(results[i].logprobs[0],
                logits[results[i].tokens[0]] - LogSumExpOf(logits), kTolerance);
    const auto prompt = expected["prompt_logprobs"].get<std::vector<double>>();
    ASSERT_EQ(results[i].prompt_logprobs.size(), prompt.size());
    for (size_t t = 0; t < prompt.size(); ++t) {
      EXPECT_NEAR(results[i].prompt_logprobs[t], prompt[t], kTolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(CachedAndRecomputed, GoldenTest, testing::Bool(),
                         [](const auto& of) {
                           return of.param ? "Recomputed" : "Cached";
                         });

}  // namespace
}  // namespace folio
