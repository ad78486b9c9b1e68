// Models with a sliding window give pages back while their sequences run, and
// say the same as if they kept them.

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
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

constexpr int32_t kPageSize = 8;

// The model in an engine whose pool has `num_pages` pages.
struct Served {
  Served(const std::string& spec, int32_t num_pages, int32_t max_batch_tokens)
      : clock(absl::UnixEpoch()) {
    EngineOptions options;
    options.page_size = kPageSize;
    options.scheduler = {.max_batch_tokens = max_batch_tokens,
                         .max_batch_sequences = 4};
    auto model = OpenModel(spec, options.model_limits(), &executor,
                           {ElementType::kF32, ElementType::kF32});
    CHECK(model.ok()) << model.status();
    tokenizer = std::make_unique<ByteTokenizer>((*model)->info().vocab_size);
    options.kv_pool_bytes =
        num_pages * KvLayout((*model)->info().kv_shape, kPageSize).page_bytes();
    auto created = Engine::Create(options, *std::move(model), tokenizer.get(),
                                  &clock, &executor);
    CHECK(created.ok()) << created.status();
    engine = *std::move(created);
  }

  ManualClock clock;
  SerialExecutor executor;
  std::unique_ptr<ByteTokenizer> tokenizer;
  std::unique_ptr<Engine> engine;
};

Request ARequest(std::vector<TokenId> prompt, int32_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  request.sampling = {.logprobs = 1};
  return request;
}

std::vector<TokenId> Ascending(int32_t count) {
  std::vector<TokenId> tokens(count);
  for (int32_t i = 0; i < count; ++i) tokens[i] = i * 7 % 120;
  return tokens;
}

constexpr char kWindow24[] = "random:arch=mistral,window=24";

// The pages that sequences held in each step, by the reports.
std::vector<int32_t> PagesByStep(Engine& engine, Request request) {
  CHECK(engine.Prepare(request).ok());
  CHECK(engine.Submit(std::move(request)).ok());
  std::vector<int32_t> pages;
  StepOutput output;
  bool more = true;
  while (more) {
    more = engine.Step(output);
    if (!output.stepped) continue;
    output.report.memory.CheckIdentities();
    pages.push_back(output.report.memory.pages_in_use);
  }
  return pages;
}

TEST(WindowTest, PagesThatHaveLeftAreFreedWhileTheSequenceRuns) {
  // 5 prompt tokens and 95 generated ones: 13 pages if none left.
  Served served(kWindow24, /*num_pages=*/20, /*max_batch_tokens=*/8);
  const std::vector<int32_t> pages =
      PagesByStep(*served.engine, ARequest(Ascending(5), 95));
  ASSERT_EQ(pages.size(), 95u);
  for (size_t step = 0; step < pages.size(); ++step) {
    // This step computed the token at position `last`, which sees back to
    // `first`: their pages and all between.
    const int32_t last = static_cast<int32_t>(step) + 4;
    const int32_t first = std::max(0, last - 23);
    EXPECT_EQ(pages[step], last / kPageSize - first / kPageSize + 1)
        << "step " << step;
  }
}

TEST(WindowTest, APoolOfOneWindowHoldsAnySequence) {
  // (24 - 1) tokens lie in 3 pages, and the token itself may begin a fourth.
  Served small(kWindow24, /*num_pages=*/4, /*max_batch_tokens=*/64);
  Served large(kWindow24, /*num_pages=*/100, /*max_batch_tokens=*/64);
  EXPECT_EQ(small.engine->scheduler().MaxTokens(), 4096);
  const Request request = ARequest(Ascending(200), 300);
  const Generated in_small = RunToEnd(*small.engine, {request})[0];
  const Generated in_large = RunToEnd(*large.engine, {request})[0];
  EXPECT_EQ(in_small.tokens.size(), 300u);
  EXPECT_EQ(in_small.tokens, in_large.tokens);
  EXPECT_EQ(in_small.logprobs, in_large.logprobs);
}

TEST(WindowTest, ASmallerPoolBoundsTheSequence) {
  Served served(kWindow24, /*num_pages=*/3, /*max_batch_tokens=*/64);
  EXPECT_EQ(served.engine->scheduler().MaxTokens(), 3 * kPageSize);
  Request request = ARequest(Ascending(3 * kPageSize), 1);
  EXPECT_FALSE(served.engine->Prepare(request).ok());
}

TEST(WindowTest, SequencesThatCrowdEachOtherOutSayTheSame) {
  Served alone(kWindow24, /*num_pages=*/100, /*max_batch_tokens=*/64);
  Served crowded(kWindow24, /*num_pages=*/6, /*max_batch_tokens=*/16);
  std::vector<Request> requests;
  for (int32_t i = 0; i < 5; ++i) {
    requests.push_back(ARequest(Ascending(10 + 20 * i), 60));
  }
  const std::vector<Generated> together = RunToEnd(*crowded.engine, requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Generated one = RunToEnd(*alone.engine, {requests[i]})[0];
    EXPECT_EQ(together[i].tokens, one.tokens) << i;
    EXPECT_EQ(together[i].logprobs, one.logprobs) << i;
  }
}

TEST(WindowTest, OutputsAreThoseOfTheReference) {
  const std::string folder =
      std::string(FOLIO_SHARED_DIR) + "/reference/mistral-window";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "There is no reference data at " << folder;
  }
  const auto cases = ReadJsonFile(folder + "/cases.json");
  ASSERT_TRUE(cases.ok()) << cases.status();
  Served served(folder, /*num_pages=*/4, /*max_batch_tokens=*/64);
  constexpr double kTolerance = 2e-4;
  for (const auto& one : *cases) {
    SCOPED_TRACE(one["prompt"].size());
    const auto expected = one["greedy"].get<std::vector<TokenId>>();
    Request request = ARequest(one["prompt"].get<std::vector<TokenId>>(),
                               static_cast<int32_t>(expected.size()));
    request.sampling.prompt_logprobs = true;
    const Generated result = RunToEnd(*served.engine, {request})[0];
    const auto logprobs = one["prompt_logprobs"].get<std::vector<double>>();
    ASSERT_EQ(result.prompt_logprobs.size(), logprobs.size());
    for (size_t i = 0; i < logprobs.size(); ++i) {
      EXPECT_NEAR(result.prompt_logprobs[i], logprobs[i], kTolerance);
    }
    // Closer choices may go either way.
    if (one["greedy_min_margin"].get<double>() < kTolerance) continue;
    EXPECT_EQ(result.tokens, expected);
  }
}

}  // namespace
}  // namespace folio
