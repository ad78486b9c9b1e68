// Every model of the reference data, by the numbers that come with it. Skipped
// where there is no such data; tests/golden has small models of our own.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/model/model_registry.h"
#include "runtime/weights/json_file.h"
#include "tests/runtime/model/model_logits.h"
#include "tests/runtime/model/step_runner.h"
#include "tests/support/test_executors.h"

namespace folio {
namespace {

using nlohmann::json;

constexpr ModelLimits kLimits{.max_batch_tokens = 100, .max_logits_rows = 8};
constexpr WantedTypes kF32{ElementType::kF32, ElementType::kF32};
constexpr WantedTypes kBf16{ElementType::kBf16, ElementType::kBf16};

const std::string kReference = std::string(FOLIO_SHARED_DIR) + "/reference/";

// The prompt's logits, and `count` greedy tokens behind it.
struct Continued {
  Logits prompt;
  std::vector<TokenId> greedy;
};

Continued Continue(Model& model, std::span<const TokenId> prompt, int count) {
  StepRunner runner(model, 16, 1, static_cast<int32_t>(prompt.size()) + count);
  Continued result;
  runner.Add(0, prompt);
  result.prompt = runner.Run();
  result.greedy.push_back(Likeliest(result.prompt.back()));
  for (int i = 1; i < count; ++i) {
    runner.Add(0, {&result.greedy.back(), 1});
    result.greedy.push_back(Likeliest(runner.Run()[0]));
  }
  return result;
}

// The largest difference between the first 16 logits.
double WorstOfFirst16(std::span<const float> logits, const json& expected) {
  double worst = 0;
  for (size_t i = 0; i < 16; ++i) {
    worst = std::max(worst, std::abs(logits[i] - expected[i].get<double>()));
  }
  return worst;
}

double SumOf(std::span<const float> logits) {
  double sum = 0;
  for (const float logit : logits) sum += logit;
  return sum;
}

double NormOf(std::span<const float> logits) {
  double squares = 0;
  for (const float logit : logits) squares += double{logit} * logit;
  return std::sqrt(squares);
}

// Greedy tokens must be equal where the choice was never closer than the error.
void ExpectGreedy(const std::vector<TokenId>& greedy, const json& expected,
                  double tolerance) {
  if (expected["greedy_min_margin"].get<double>() < tolerance) return;
  EXPECT_EQ(greedy, expected["greedy"].get<std::vector<TokenId>>());
}

class FolderTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = kReference + GetParam();
    if (!std::filesystem::exists(folder_)) {
      GTEST_SKIP() << "There is no reference data at " << folder_;
    }
    const auto cases = ReadJsonFile(folder_ + "/cases.json");
    ASSERT_TRUE(cases.ok()) << cases.status();
    ASSERT_GE(cases->size(), 8u);
    cases_ = *cases;
  }

  std::string folder_;
  json cases_;
  SerialExecutor executor_;
};

TEST_P(FolderTest, F32AgreesInEveryCase) {
  // The reference was computed in f32 too, and is printed to six digits.
  constexpr double kTolerance = 2e-4;
  const auto model = OpenModel(folder_, kLimits, &executor_, kF32);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const json& c : cases_) {
    const auto prompt = c["prompt"].get<std::vector<TokenId>>();
    SCOPED_TRACE(std::to_string(prompt.size()) + " tokens");
    ASSERT_EQ(c["greedy"].size(), 48u);
    const Continued result = Continue(**model, prompt, 48);
    const std::vector<float>& last = result.prompt.back();
    EXPECT_LT(WorstOfFirst16(last, c["last_logits_first16"]), kTolerance);
    // Errors of all logits, which do not agree in sign.
    EXPECT_NEAR(SumOf(last), c["last_logits_sum"].get<double>(),
                kTolerance * std::sqrt(double(last.size())));
    EXPECT_NEAR(NormOf(last), c["last_logits_l2"].get<double>(), kTolerance);
    for (size_t i = 0; i + 1 < prompt.size(); ++i) {
      EXPECT_NEAR(Logprob(result.prompt[i], prompt[i + 1]),
                  c["prompt_logprobs"][i].get<double>(), kTolerance);
    }
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(Logprob(last, c["top5_ids"][i].get<TokenId>()),
                  c["top5_logprobs"][i].get<double>(), kTolerance);
    }
    ExpectGreedy(result.greedy, c, kTolerance);
  }
}

TEST_P(FolderTest, Bf16ErrsByLittle) {
  const auto model = OpenModel(folder_, kLimits, &executor_, kBf16);
  ASSERT_TRUE(model.ok()) << model.status();
  double worst = 0;
  double worst_relative = 0;
  for (const json& c : cases_) {
    const auto prompt = c["prompt"].get<std::vector<TokenId>>();
    const Logits logits = RunAlone(**model, prompt, 100, 16);
    const double error =
        WorstOfFirst16(logits.back(), c["last_logits_first16"]);
    const double root_mean_square = c["last_logits_l2"].get<double>() /
                                    std::sqrt(double(logits.back().size()));
    worst = std::max(worst, error);
    worst_relative = std::max(worst_relative, error / root_mean_square);
  }
  std::cout << "bf16, " << GetParam() << ": the first 16 logits err by up to "
            << worst << ", " << worst_relative
            << " of their root mean square\n";
  RecordProperty("worst_error", std::to_string(worst));
  // Some tens of roundings of 2^-9 on the way to logits of that size: weights,
  // what they meet, K/V, q and the weights of attention.
  EXPECT_LT(worst_relative, 0.08);
}

INSTANTIATE_TEST_SUITE_P(All, FolderTest,
                         testing::Values("tiny-causal-lm", "llama-gqa",
                                         "llama-mqa-tied", "mistral-window",
                                         "qwen2", "qwen3", "gpt2"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

class GgufTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    path_ = kReference + "gguf/llama-" + GetParam();
    if (!std::filesystem::exists(path_ + ".gguf")) {
      GTEST_SKIP() << "There is no reference data at " << path_ << ".gguf";
    }
    const auto cases = ReadJsonFile(path_ + ".json");
    ASSERT_TRUE(cases.ok()) << cases.status();
    ASSERT_EQ(cases->size(), 4u);
    cases_ = *cases;
  }

  std::string path_;
  json cases_;
  SerialExecutor executor_;
};

TEST_P(GgufTest, F32IsTheDequantisedModel) {
  constexpr double kTolerance = 1e-3;
  const auto model = OpenModel(path_ + ".gguf", kLimits, &executor_, kF32);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const json& c : cases_) {
    const auto prompt = c["prompt"].get<std::vector<TokenId>>();
    SCOPED_TRACE(std::to_string(prompt.size()) + " tokens");
    const json& exact = c["dequantised_f32"];
    const Continued result =
        Continue(**model, prompt, static_cast<int>(exact["greedy"].size()));
    const std::vector<float>& last = result.prompt.back();
    EXPECT_LT(WorstOfFirst16(last, exact["last_logits_first16"]), kTolerance);
    EXPECT_NEAR(NormOf(last), exact["last_logits_l2"].get<double>(),
                kTolerance);
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(Logprob(last, exact["top5_ids"][i].get<TokenId>()),
                  exact["top5_logprobs"][i].get<double>(), kTolerance);
    }
    ExpectGreedy(result.greedy, exact, kTolerance);
  }
}

// Of int8 and int4, with K/V of bf16 and int8. They round activations to 8 bits
// a token, and int4 may have fewer bits than the file.
TEST_P(GgufTest, IntegersErrByTheirRounding) {
  for (const auto& [weights, kv, bound] :
       {std::tuple{ElementType::kInt8, ElementType::kBf16, 0.4},
        {ElementType::kInt8, ElementType::kInt8, 0.4},
        {ElementType::kInt4, ElementType::kBf16, 1.5}}) {
    const auto model = OpenModel(path_ + ".gguf", kLimits, &executor_,
                                 {.weights = weights, .kv = kv});
    ASSERT_TRUE(model.ok()) << model.status();
    double worst = 0;
    double worst_relative = 0;
    for (const json& c : cases_) {
      const auto prompt = c["prompt"].get<std::vector<TokenId>>();
      const json& exact = c["dequantised_f32"];
      const Logits logits = RunAlone(**model, prompt, 100, 16);
      const double error =
          WorstOfFirst16(logits.back(), exact["last_logits_first16"]);
      worst = std::max(worst, error);
      worst_relative = std::max(worst_relative,
                                error / exact["last_logits_l2"].get<double>() *
                                    std::sqrt(double(logits.back().size())));
    }
    std::cout << GetParam() << ": the first 16 logits err by up to " << worst
              << " in " << NameOf(weights) << " with K/V of " << NameOf(kv)
              << "\n";
    // Errors of 2^-8 (weights and activations of int8) and 2^-4 (int4) of the
    // greatest in a row or group add up over a few layers; more than this of
    // the logits' root mean square is a mistake.
    EXPECT_LT(worst_relative, bound);
  }
}

TEST_P(GgufTest, Bf16IsNearerThanTheSecondEngine) {
  const auto model = OpenModel(path_ + ".gguf", kLimits, &executor_, kBf16);
  ASSERT_TRUE(model.ok()) << model.status();
  double ours = 0;
  double theirs = 0;
  for (const json& c : cases_) {
    const auto prompt = c["prompt"].get<std::vector<TokenId>>();
    const json& exact = c["dequantised_f32"]["last_logits_first16"];
    const Logits logits = RunAlone(**model, prompt, 100, 16);
    ours = std::max(ours, WorstOfFirst16(logits.back(), exact));
    const auto second =
        c["second_engine"]["last_logits_first16"].get<std::vector<float>>();
    theirs = std::max(theirs, WorstOfFirst16(second, exact));
  }
  std::cout << GetParam() << ": the first 16 logits err by up to " << ours
            << " in bf16, by " << theirs << " in the second engine\n";
  RecordProperty("worst_error", std::to_string(ours));
  // The second engine does not quantise what is stored as floats.
  const bool is_quantised = std::string(GetParam()).starts_with("q");
  if (is_quantised) {
    EXPECT_LT(ours, theirs);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufTest,
                         testing::Values("f16", "bf16", "q8_0", "q4_0", "q4_1",
                                         "q5_0", "q5_1", "q2_K", "q3_K_M",
                                         "q4_K_M", "q5_K_M", "q6_K"),
                         [](const auto& test) {
                           return std::string(test.param);
                         });

}  // namespace
}  // namespace folio
