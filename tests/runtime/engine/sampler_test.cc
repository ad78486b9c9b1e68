// The sampler against a plain one in double precision.

#include "runtime/engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/executor.h"
#include "runtime/base/philox.h"

namespace folio {
namespace {

constexpr int32_t kVocabSize = 1000;
// Sums of 1,000 f32 exponentials against doubles: an f32 has 24 bits, so each
// term is off by about 1e-7 of itself, and so is their sum.
constexpr double kTolerance = 2e-6;

std::vector<float> RandomLogits(uint64_t seed) {
  std::vector<float> logits(kVocabSize);
  for (int32_t i = 0; i < kVocabSize; ++i) {
    logits[i] = static_cast<float>(12 * UniformDouble(seed, 3, i) - 6);
  }
  return logits;
}

double PlainLogSumExp(const std::vector<float>& logits, double temperature) {
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit / temperature);
  return std::log(sum);
}

// One step in which each sequence, made from `params`, samples one row.
class SamplerTest : public testing::Test {
 protected:
  void AddSequence(const SamplingParams& params, std::vector<float> logits) {
    auto request = std::make_shared<Request>();
    request->prompt = {1, 2};
    request->sampling = params;
    live_.push_back(std::make_unique<LiveRequest>(std::move(request)));
    sequences_.push_back(std::make_unique<Sequence>(
        SequenceId{sequences_.size() + 1}, live_.back().get(), /*number=*/1,
        /*token_limit=*/100));
    rows_.push_back(std::move(logits));
  }

  void Sample() {
    const int32_t rows = static_cast<int32_t>(rows_.size());
    ColumnBlocks logits(rows, {0, 512, kVocabSize});
    std::vector<const Sequence*> sequences;
    std::vector<SampleInput> samples;
    std::vector<int32_t> logits_rows(rows);
    std::iota(logits_rows.begin(), logits_rows.end(), 0);
    for (int32_t row = 0; row < rows; ++row) {
      std::copy_n(rows_[row].begin(), 512, logits.block_data(0) + row * 512);
      std::copy(rows_[row].begin() + 512, rows_[row].end(),
                logits.block_data(1) + row * (kVocabSize - 512));
      sequences.push_back(sequences_[row].get());
      samples.push_back({.logits_row = row, .sequence = row});
    }
    StepInput input;
    input.logits_rows = logits_rows;
    input.samples = samples;
    SerialExecutor executor;
    Sampler sampler(&executor, kVocabSize);
    sampler.Start(input, sequences, result_);
    sampler.SampleTile(logits, 0, rows, result_);
  }

  std::vector<std::unique_ptr<LiveRequest>> live_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<std::vector<float>> rows_;
  StepResult result_;
};

TEST_F(SamplerTest, GreedyTakesTheFirstOfTheLargest) {
  std::vector<float> logits = RandomLogits(1);
  logits[700] = logits[300] = 50;
  AddSequence({}, logits);
  Sample();
  EXPECT_THAT(result_.sequences[0].sampled.tokens, testing::ElementsAre(300));
  EXPECT_TRUE(result_.sequences[0].sampled.logprobs.empty());
}

TEST_F(SamplerTest, LogprobsAreOfTheRawDistribution) {
  const std::vector<float> logits = RandomLogits(2);
  AddSequence({.temperature = 0.3f, .seed = 5, .logprobs = 4}, logits);
  Sample();
  const ScoredTokens& sampled = result_.sequences[0].sampled;
  const double log_sum = PlainLogSumExp(logits, 1);
  EXPECT_NEAR(sampled.logprobs[0], logits[sampled.tokens[0]] - log_sum,
              kTolerance);

  std::vector<int32_t> order(kVocabSize);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  ASSERT_EQ(sampled.TopOf(0).size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(sampled.TopOf(0)[i].token, order[i]);
    EXPECT_NEAR(sampled.TopOf(0)[i].logprob, logits[order[i]] - log_sum,
                kTolerance);
  }
}

// Changed logits, at the temperature, before top_k cuts them.
TEST_F(SamplerTest, ProcessedLogprobsAreOfWhatIsDrawnFrom) {
  std::vector<float> logits = RandomLogits(2);
  const SamplingParams params{.temperature = 0.5f,
                              .top_k = 3,
                              .logit_bias = {{7, 4.0f}},
                              .repetition_penalty = 1.5f,
                              .seed = 5,
                              .logprobs = 4,
                              .processed_logprobs = true};
  AddSequence(params, logits);
  Sample();
  logits[7] += 4;
  for (const TokenId token : {1, 2}) {  // The prompt's.
    logits[token] =
        logits[token] > 0 ? logits[token] / 1.5f : logits[token] * 1.5f;
  }
  const double log_sum = PlainLogSumExp(logits, 0.5);
  const ScoredTokens& sampled = result_.sequences[0].sampled;
  EXPECT_NEAR(sampled.logprobs[0], logits[sampled.tokens[0]] / 0.5 - log_sum,
              2 * kTolerance);
  const TokenLogprob& best = sampled.TopOf(0)[0];
  EXPECT_EQ(logits[best.token],
            *std::max_element(logits.begin(), logits.end()));
  EXPECT_NEAR(best.logprob, logits[best.token] / 0.5 - log_sum, 2 * kTolerance);
}

TEST_F(SamplerTest, RawLogprobsStayRawWhereLogitsAreChanged) {
  std::vector<float> logits = RandomLogits(3);
  AddSequence({.logit_bias = {{7, 100.0f}}, .logprobs = 0}, logits);
  Sample();
  const ScoredTokens& sampled = result_.sequences[0].sampled;
  EXPECT_THAT(sampled.tokens, testing::ElementsAre(7));
  EXPECT_NEAR(sampled.logprobs[0], logits[7] - PlainLogSumExp(logits, 1),
              kTolerance);
}

TEST_F(SamplerTest, ASequenceWithoutATokenLeftSamplesNone) {
  auto bad = std::make_shared<Request>();
  bad->prompt = {1};
  bad->masks = {MakeAllowedTokensMask({4}), MakeBadWordsMask({{4}})};
  live_.push_back(std::make_unique<LiveRequest>(std::move(bad)));
  sequences_.push_back(std::make_unique<Sequence>(
      SequenceId{1}, live_.back().get(), /*number=*/1, /*token_limit=*/100));
  rows_.push_back(RandomLogits(4));
  AddSequence({}, RandomLogits(5));
  Sample();
  EXPECT_TRUE(result_.sequences[0].exhausted);
  EXPECT_FALSE(result_.sequences[0].not_finite);
  EXPECT_TRUE(result_.sequences[0].sampled.tokens.empty());
  EXPECT_FALSE(result_.sequences[1].exhausted);
  EXPECT_EQ(result_.sequences[1].sampled.tokens.size(), 1u);
}

TEST_F(SamplerTest, DrawsInvertTheCumulativeDistribution) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    AddSequence({.temperature = 0.7f, .seed = seed}, RandomLogits(seed));
  }
  Sample();
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const TokenId token = result_.sequences[seed].sampled.tokens[0];
    const double u = UniformDouble(seed, /*stream=*/0, /*position=*/0);
    const double log_sum = PlainLogSumExp(rows_[seed], 0.7);
    double below = 0;
    for (TokenId t = 0; t < token; ++t) {
      below += std::exp(rows_[seed][t] / 0.7 - log_sum);
    }
    const double with = below + std::exp(rows_[seed][token] / 0.7 - log_sum);
    EXPECT_GT(u, below - kTolerance) << "seed " << seed;
    EXPECT_LT(u, with + kTolerance) << "seed " << seed;
  }
}

TEST_F(SamplerTest, DrawNumberCountsGeneratedTokens) {
  const SamplingParams params{.temperature = 1.0f, .seed = 9};
  const std::vector<float> flat(kVocabSize, 0.0f);
  for (int generated = 0; generated < 50; ++generated) {
    AddSequence(params, flat);
    sequences_.back()->tokens.resize(2 + generated, 0);
  }
  Sample();
  for (int generated = 0; generated < 50; ++generated) {
    // Of equal weights, draw u takes token floor(u * size).
    const double u = UniformDouble(9, 0, generated);
    EXPECT_EQ(result_.sequences[generated].sampled.tokens[0],
              static_cast<TokenId>(u * kVocabSize));
  }
}

// Logits that give the first tokens `probabilities`, and all others none.
std::vector<float> LogitsFor(const std::vector<double>& probabilities) {
  std::vector<float> logits(kVocabSize,
                            -std::numeric_limits<float>::infinity());
  for (size_t i = 0; i < probabilities.size(); ++i) {
    logits[i] = static_cast<float>(std::log(probabilities[i]));
  }
  return logits;
}

// By hand: what is left of {0.5, 0.3, 0.15, 0.05}, and with which share the
// first token of it.
struct Cut {
  SamplingParams params;
  int32_t num_left;
  double first_share;
};

TEST_F(SamplerTest, TopKAndTopPCutTheDistribution) {
  const Cut cuts[] = {
      {{.temperature = 1, .top_k = 3}, 3, 0.5 / 0.95},
      {{.temperature = 1, .top_p = 0.75f}, 2, 0.5 / 0.8},
      // 0.8 of the whole, but 0.842 of what top_k leaves.
      {{.temperature = 1, .top_k = 3, .top_p = 0.83f}, 2, 0.5 / 0.8},
      {{.temperature = 1, .top_p = 0.83f}, 3, 0.5 / 0.95},
      // At temperature 1/2 the first has 0.25 / 0.365 = 0.685.
      {{.temperature = 0.5f, .top_p = 0.65f}, 1, 1},
      {{.temperature = 1, .top_p = 0.65f}, 2, 0.5 / 0.8},
      {{.temperature = 1, .top_p = 0.0001f}, 1, 1},
      {{.temperature = 1, .top_k = 1000, .top_p = 1}, 4, 0.5}};
  constexpr uint64_t kDraws = 200;
  for (const Cut& cut : cuts) {
    for (uint64_t seed = 0; seed < kDraws; ++seed) {
      SamplingParams params = cut.params;
      params.seed = seed;
      AddSequence(params, LogitsFor({0.5, 0.3, 0.15, 0.05}));
    }
  }
  Sample();
  size_t row = 0;
  for (const Cut& cut : cuts) {
    TokenId greatest = 0;
    for (uint64_t seed = 0; seed < kDraws; ++seed) {
      const TokenId token = result_.sequences[row++].sampled.tokens[0];
      greatest = std::max(greatest, token);
      const double u = UniformDouble(seed, /*stream=*/0, /*position=*/0);
      EXPECT_EQ(token == 0, u < cut.first_share) << "seed " << seed;
    }
    EXPECT_EQ(greatest, cut.num_left - 1) << "cut " << &cut - cuts;
  }
}

TEST_F(SamplerTest, TopKAndTopPDoNotChangeGreedyChoicesOrLogprobs) {
  const std::vector<float> logits = RandomLogits(6);
  AddSequence({.logprobs = 4}, logits);
  AddSequence({.top_k = 2, .top_p = 0.1f, .logprobs = 4}, logits);
  Sample();
  const ScoredTokens& plain = result_.sequences[0].sampled;
  const ScoredTokens& cut = result_.sequences[1].sampled;
  EXPECT_EQ(cut.tokens, plain.tokens);
  EXPECT_EQ(cut.logprobs, plain.logprobs);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(cut.top[i].token, plain.top[i].token);
    EXPECT_EQ(cut.top[i].logprob, plain.top[i].logprob);
  }
}

TEST_F(SamplerTest, WhatIsNotANumberIsMarked) {
  std::vector<float> nan = RandomLogits(1);
  nan[999] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> infinite = RandomLogits(1);
  infinite[0] = std::numeric_limits<float>::infinity();
  const std::vector<float> nothing(kVocabSize,
                                   -std::numeric_limits<float>::infinity());
  AddSequence({}, nan);
  AddSequence({}, infinite);
  AddSequence({}, nothing);
  // A single token without probability is no error.
  std::vector<float> masked = RandomLogits(1);
  masked[5] = -std::numeric_limits<float>::infinity();
  AddSequence({.temperature = 1, .top_p = 0.9f, .seed = 1}, masked);
  Sample();
  EXPECT_TRUE(result_.sequences[0].not_finite);
  EXPECT_TRUE(result_.sequences[1].not_finite);
  EXPECT_TRUE(result_.sequences[2].not_finite);
  EXPECT_FALSE(result_.sequences[3].not_finite);
}

TEST_F(SamplerTest, TinyTemperatureIsGreedy) {
  const std::vector<float> logits = RandomLogits(4);
  AddSequence({.temperature = 1e-45f, .seed = 1}, logits);
  AddSequence({}, logits);
  Sample();
  EXPECT_EQ(result_.sequences[0].sampled.tokens,
            result_.sequences[1].sampled.tokens);
}

}  // namespace
}  // namespace folio
