// Hand-computed values, and the definition on random sequences.

#include "runtime/engine/logit_changes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/live_request.h"
#include "scheduler/request.h"

namespace folio {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr float kNever = -std::numeric_limits<float>::infinity();

class LogitChangesTest : public testing::Test {
 protected:
  // A sequence of `request` that has generated `generated`.
  const Sequence& Make(const Request& request,
                       const std::vector<TokenId>& generated) {
    live_ =
        std::make_unique<LiveRequest>(std::make_shared<const Request>(request));
    sequence_ = std::make_unique<Sequence>(SequenceId{1}, live_.get(),
                                           /*number=*/1, /*token_limit=*/1000);
    for (const TokenId token : generated) {
      sequence_->tokens.push_back(token);
      for (const auto& mask : sequence_->masks) mask->Advance(token);
    }
    return *sequence_;
  }

  std::vector<float> Change(const Request& request,
                            const std::vector<TokenId>& generated,
                            std::vector<float> logits) {
    const Sequence& sequence = Make(request, generated);
    std::vector<int32_t> counts(logits.size(), 0);
    ChangeLogits(sequence, logits, counts);
    EXPECT_THAT(counts, Each(0));
    return logits;
  }

  std::unique_ptr<LiveRequest> live_;
  std::unique_ptr<Sequence> sequence_;
};

TEST_F(LogitChangesTest, APlainRequestChangesNothing) {
  Request request;
  request.prompt = {0, 1};
  request.sampling = {.temperature = 0.7f, .top_k = 5, .top_p = 0.5f};
  EXPECT_FALSE(ChangesLogits(Make(request, {1, 2})));
  EXPECT_THAT(Change(request, {1, 2}, {1, 2, 3}), ElementsAre(1, 2, 3));
}

TEST_F(LogitChangesTest, PenaltiesAsComputedByHand) {
  Request request;
  request.prompt = {0, 1};
  request.sampling.repetition_penalty = 2;
  request.sampling.presence_penalty = 0.5f;
  request.sampling.frequency_penalty = 0.25f;
  EXPECT_TRUE(ChangesLogits(Make(request, {})));
  // 0: in the prompt, positive: halved. 1: in the prompt and once generated,
  // negative: doubled, less 0.5 and 0.25. 2: three times generated: halved,
  // less 0.5 and 3 * 0.25. 3: never seen.
  EXPECT_THAT(Change(request, {2, 1, 2, 2}, {4, -3, 6, 5}),
              ElementsAre(2, -6.75f, 1.75f, 5));
}

TEST_F(LogitChangesTest, BiasesComeBeforePenalties) {
  Request request;
  request.prompt = {0};
  request.sampling.logit_bias = {{0, 3}, {2, -1}};
  request.sampling.repetition_penalty = 4;
  EXPECT_THAT(Change(request, {}, {5, 1, 1}), ElementsAre(2, 1, 0));
}

TEST_F(LogitChangesTest, StopTokensWaitForMinTokens) {
  Request request;
  request.prompt = {0};
  request.stop_tokens = {1, 3};
  request.min_tokens = 2;
  EXPECT_THAT(Change(request, {}, {1, 2, 3, 4}),
              ElementsAre(1, kNever, 3, kNever));
  EXPECT_THAT(Change(request, {2}, {1, 2, 3, 4}),
              ElementsAre(1, kNever, 3, kNever));
  EXPECT_FALSE(ChangesLogits(Make(request, {2, 2})));
}

TEST_F(LogitChangesTest, WhatMasksRuleOutNoBiasBringsBack) {
  Request request;
  request.prompt = {0};
  request.sampling.logit_bias = {{1, 100}};
  request.sampling.repetition_penalty = 0.5f;
  request.masks = {MakeAllowedTokensMask({0, 2}), MakeBadWordsMask({{2, 0}})};
  EXPECT_THAT(Change(request, {1}, {1, 1, 1}), ElementsAre(2, kNever, 1));
  EXPECT_THAT(Change(request, {2}, {1, 1, 1}), ElementsAre(kNever, kNever, 2));
}

TEST_F(LogitChangesTest, EqualsTheDefinition) {
  constexpr int32_t kVocabulary = 20;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto token = [&] { return static_cast<TokenId>(random() % 20); };
    Request request;
    request.prompt.resize(1 + random() % 30);
    std::ranges::generate(request.prompt, token);
    std::vector<TokenId> generated(random() % 30);
    std::ranges::generate(generated, token);
    SamplingParams& sampling = request.sampling;
    sampling.repetition_penalty = 0.5f + static_cast<float>(random() % 8) / 4;
    sampling.presence_penalty = static_cast<float>(random() % 9) / 2 - 2;
    sampling.frequency_penalty = static_cast<float>(random() % 9) / 2 - 2;
    sampling.logit_bias = {{token(), 1.5f}};
    std::vector<float> logits(kVocabulary);
    for (float& logit : logits) logit = static_cast<float>(random() % 17) - 8;

    const std::vector<float> changed = Change(request, generated, logits);
    for (TokenId t = 0; t < kVocabulary; ++t) {
      float expected = logits[t];
      if (t == sampling.logit_bias[0].first) expected += 1.5f;
      const auto times = std::ranges::count(generated, t);
      if (times > 0 || std::ranges::count(request.prompt, t) > 0) {
        expected = expected > 0 ? expected / sampling.repetition_penalty
                                : expected * sampling.repetition_penalty;
      }
      if (times > 0) {
        expected = expected - sampling.presence_penalty -
                   sampling.frequency_penalty * static_cast<float>(times);
      }
      EXPECT_EQ(changed[t], expected) << "token " << t;
    }
  }
}

}  // namespace
}  // namespace folio
