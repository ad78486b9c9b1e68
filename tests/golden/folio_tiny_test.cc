// The model that Folio carries in itself, against what its trainer
// (runtime/model/folio_tiny/evaluation.py) has made of the same files with
// PyTorch.

#include <glog/logging.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/engine/engine.h"
#include "runtime/model/embedded_model.h"
#include "runtime/model/model_registry.h"
#include "runtime/tokenizer/detokenizer.h"
#include "runtime/tokenizer/open_tokenizer.h"
#include "runtime/weights/json_file.h"
#include "tests/support/engine_driver.h"

namespace folio {
namespace {

using nlohmann::json;

constexpr char kCases[] =
    FOLIO_SOURCE_DIR "/tests/golden/folio-tiny/cases.json";

class FolioTinyTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto cases = ReadJsonFile(kCases);
    ASSERT_TRUE(cases.ok()) << cases.status();
    cases_ = *cases;
    auto tokenizer = OpenHfTokenizer(EmbeddedModelFiles());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
    bos_ = tokenizer_->info().bos_token.value();
  }

  std::vector<TokenId> Encode(const std::string& text, bool add_special) const {
    const auto tokens = tokenizer_->Encode(text, {.add_special = add_special});
    CHECK(tokens.ok()) << tokens.status();
    return *tokens;
  }

  Generated Run(Request request, ElementType type) {
    EngineOptions options;
    auto model =
        OpenModel("", options.model_limits(), &executor_, {type, type});
    CHECK(model.ok()) << model.status();
    auto engine = Engine::Create(options, *std::move(model), tokenizer_.get(),
                                 &clock_, &executor_);
    CHECK(engine.ok()) << engine.status();
    return RunToEnd(**engine, {std::move(request)})[0];
  }

  // The mean logprob of a held-out passage behind BOS.
  double MeanLogprob(const json& passage, ElementType type) {
    Request request;
    request.prompt = Encode(passage["text"].get<std::string>(), true);
    request.max_tokens = 0;
    request.sampling.prompt_logprobs = true;
    const Generated result = Run(std::move(request), type);
    double sum = 0;
    for (const float logprob : result.prompt_logprobs) sum += logprob;
    return sum / static_cast<double>(result.prompt_logprobs.size());
  }

  json cases_;
  std::unique_ptr<Tokenizer> tokenizer_;
  TokenId bos_ = 0;
  SerialExecutor executor_;
  ManualClock clock_{absl::UnixEpoch()};
};

TEST_F(FolioTinyTest, TextHasTheTokensThatItWasTrainedOn) {
  for (const json& passage : cases_["held_out"]) {
    const auto text = passage["text"].get<std::string>();
    const auto ids = passage["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(Encode(text, false), ids);
    EXPECT_EQ(Decode(*tokenizer_, ids), text);
    std::vector<TokenId> with_bos = ids;
    with_bos.insert(with_bos.begin(), bos_);
    EXPECT_EQ(Encode(text, true), with_bos);
  }
}

// f32 sums in another order; logprobs are printed to six digits.
constexpr double kTolerance = 2e-4;

TEST_F(FolioTinyTest, LogprobsAreThoseOfPyTorch) {
  ASSERT_EQ(cases_["held_out"].size(), 5u);
  for (const json& passage : cases_["held_out"]) {
    Request request;
    request.prompt = Encode(passage["text"].get<std::string>(), true);
    request.max_tokens = 0;
    request.sampling.prompt_logprobs = true;
    const Generated result = Run(std::move(request), ElementType::kF32);
    const auto expected = passage["logprobs"].get<std::vector<double>>();
    ASSERT_EQ(result.prompt_logprobs.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(result.prompt_logprobs[i], expected[i], kTolerance);
    }
  }
}

// In whole chapters that it has not seen, it foresees words better than a table
// of pairs, and that better than a model that has not learned.
TEST_F(FolioTinyTest, HasLearned) {
  for (const json& passage : cases_["held_out"]) {
    SCOPED_TRACE(passage["chapter"]);
    const double bigram = passage["bigram_mean_logprob"].get<double>();
    EXPECT_LT(passage["untrained_mean_logprob"].get<double>(), bigram);
    // A perplexity of less than two thirds, also in the precision in which it
    // runs.
    EXPECT_GT(MeanLogprob(passage, ElementType::kBf16), bigram + 0.4);
  }
}

TEST_F(FolioTinyTest, GreedyTokensAreThoseOfPyTorch) {
  for (const json& one : cases_["greedy"]) {
    SCOPED_TRACE(one["prompt"]);
    ASSERT_GT(one["min_margin"].get<double>(), 2 * kTolerance);
    Request request;
    request.prompt = Encode(one["prompt"].get<std::string>(), true);
    request.max_tokens = 48;
    auto expected = one["ids"].get<std::vector<TokenId>>();
    const Generated result = Run(std::move(request), ElementType::kF32);
    EXPECT_EQ(result.text, one["text"].get<std::string>());
    if (one["ended"].get<bool>()) {
      expected.push_back(tokenizer_->info().eos_tokens.front());
      EXPECT_EQ(result.finish_reason, FinishReason::kStop);
    }
    EXPECT_EQ(result.tokens, expected);
  }
}

}  // namespace
}  // namespace folio
