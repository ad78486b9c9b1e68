#include "bench/load/load.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kGood[] =
    R"({"arrival_s": 0.25, "prompt_tokens": 100, "output_tokens": 206, "token_seed": 18446744073709551615})";

TEST(ParseTraceTest, ReadsEachLine) {
  const auto requests = ParseTrace(
      absl::StrCat(
          kGood, "\n\n",
          R"({"token_seed":0,"output_tokens":1,"prompt_tokens":2147483647,"arrival_s":3})",
          "\r\n"),
      "t");
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 2u);
  EXPECT_EQ((*requests)[0].arrival, absl::Milliseconds(250));
  EXPECT_EQ((*requests)[0].prompt_tokens, 100);
  EXPECT_EQ((*requests)[0].output_tokens, 206);
  EXPECT_EQ((*requests)[0].token_seed, UINT64_MAX);
  EXPECT_EQ((*requests)[1].arrival, absl::Seconds(3));
  EXPECT_EQ((*requests)[1].prompt_tokens, INT32_MAX);
}

// The message for a bad second line.
std::string MessageOf(const std::string& line) {
  const auto requests = ParseTrace(absl::StrCat(kGood, "\n", line), "a.jsonl");
  EXPECT_EQ(requests.status().code(), absl::StatusCode::kInvalidArgument)
      << line;
  return std::string(requests.status().message());
}

// A good line with another value for one field.
std::string LineWith(const std::string& field, const std::string& value) {
  std::string line = "{";
  for (const char* name :
       {"arrival_s", "prompt_tokens", "output_tokens", "token_seed"}) {
    absl::StrAppend(&line, line.size() > 1 ? ", " : "", "\"", name,
                    "\": ", field == name ? value : "1");
  }
  return line + "}";
}

TEST(ParseTraceTest, NamesFileLineAndField) {
  for (const char* field : {"prompt_tokens", "output_tokens"}) {
    for (const char* value :
         {"0", "-3", "2.5", "2147483648", "\"7\"", "null"}) {
      EXPECT_THAT(MessageOf(LineWith(field, value)),
                  AllOf(HasSubstr("a.jsonl:2: "),
                        HasSubstr(absl::StrCat(field, " is ", value)),
                        HasSubstr("a whole number from 1 to 2147483647")));
    }
  }
  for (const char* value : {"-1", "1e300", "\"0\"", "[]"}) {
    EXPECT_THAT(MessageOf(LineWith("arrival_s", value)),
                AllOf(HasSubstr("a.jsonl:2: arrival_s is "),
                      HasSubstr("a number of seconds from 0 to ")));
  }
  for (const char* value : {"-1", "0.5", "18446744073709551616"}) {
    EXPECT_THAT(
        MessageOf(LineWith("token_seed", value)),
        AllOf(HasSubstr("a.jsonl:2: token_seed is "),
              HasSubstr("a whole number from 0 to 18446744073709551615")));
  }
}

TEST(ParseTraceTest, KnowsItsFields) {
  EXPECT_THAT(MessageOf(R"({"arrival_s": 1, "prompt_tokens": 1})"),
              HasSubstr("a.jsonl:2: output_tokens is missing"));
  EXPECT_THAT(MessageOf(R"({"arrival": 1, "prompt_tokens": 1})"),
              HasSubstr("a.jsonl:2: there is a field \"arrival\""));
  for (const char* line : {"[1]", "{\"arrival_s\": 1", "x", "{} {}"}) {
    EXPECT_THAT(MessageOf(line),
                HasSubstr(absl::StrCat("a.jsonl:2: this is not a JSON object: ",
                                       line)));
  }
}

TEST(ParseTraceTest, NeedsARequest) {
  for (const char* text : {"", "\n \n"}) {
    EXPECT_THAT(ParseTrace(text, "a.jsonl").status().message(),
                HasSubstr("a.jsonl: there is no request in it"));
  }
}

TEST(ReadTraceTest, NamesAFileThatIsNotThere) {
  const auto requests = ReadTrace("/nowhere/a.jsonl");
  EXPECT_EQ(requests.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(requests.status().message(), HasSubstr("'/nowhere/a.jsonl'"));
}

TEST(ReadTraceTest, ReadsTheSharedTrace) {
  const std::string path =
      absl::StrCat(FOLIO_SHARED_DIR, "/traces/chat-steady-long-prompts.jsonl");
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << "There is no trace at " << path;
  }
  const auto requests = ReadTrace(path);
  ASSERT_TRUE(requests.ok()) << requests.status();
  // Its README says so.
  EXPECT_EQ(requests->size(), 40u);
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  for (const LoadRequest& request : *requests) {
    prompt_tokens += request.prompt_tokens;
    output_tokens += request.output_tokens;
  }
  EXPECT_EQ(prompt_tokens, 19520);
  EXPECT_EQ(output_tokens, 4447);
}

TEST(MakeChatTest, HasTheDistributionsItWasAskedFor) {
  constexpr int32_t kCount = 20000;
  const std::vector<LoadRequest> load =
      MakeChat({.count = kCount,
                .arrivals_per_second = 4,
                .prompt = {.median = 200, .sigma = 0.9, .most = 2000},
                .output = {.median = 150, .sigma = 0.5, .most = 100000}});
  ASSERT_EQ(load.size(), size_t{kCount});
  EXPECT_EQ(load[0].arrival, absl::ZeroDuration());
  std::vector<int32_t> outputs;
  int32_t cut_prompts = 0;
  for (size_t i = 0; i < load.size(); ++i) {
    EXPECT_GE(load[i].prompt_tokens, 1);
    EXPECT_LE(load[i].prompt_tokens, 2000);
    if (load[i].prompt_tokens == 2000) ++cut_prompts;
    outputs.push_back(load[i].output_tokens);
    if (i > 0) {
      EXPECT_LE(load[i - 1].arrival, load[i].arrival);
      EXPECT_NE(load[i - 1].token_seed, load[i].token_seed);
    }
  }
  // Tolerances are 5 standard errors of each estimate or more: at the median
  // and at the quantile Phi(1) = 0.8413 of a normal of sigma 0.5 these are
  // 0.5 * 1.25 / sqrt(20000) = 0.0044 and 0.0054, relative; the mean gap's is
  // 1 / sqrt(20000) = 0.007.
  std::ranges::sort(outputs);
  EXPECT_NEAR(outputs[kCount / 2], 150, 150 * 0.022);
  EXPECT_NEAR(outputs[kCount * 8413 / 10000], 150 * std::exp(0.5),
              150 * std::exp(0.5) * 0.027);
  EXPECT_NEAR(absl::ToDoubleSeconds(load.back().arrival), kCount / 4.0,
              kCount / 4.0 * 0.035);
  // P(normal > ln(10) / 0.9) = 0.00526: 105 of 20000, give or take 10.
  EXPECT_NEAR(cut_prompts, 105, 50);
}

TEST(MakeChatTest, PutsLongPromptsBetween) {
  const std::vector<LoadRequest> load = MakeChat(
      {.count = 30, .long_prompt_every = 10, .long_prompt_tokens = 3000});
  for (size_t i = 0; i < load.size(); ++i) {
    EXPECT_EQ(load[i].prompt_tokens == 3000, i % 10 == 9) << i;
    EXPECT_EQ(load[i].arrival, absl::ZeroDuration());
  }
}

TEST(ToRequestTest, DrawsTokensOfTheVocabulary) {
  const Request request =
      ToRequest({.prompt_tokens = 5000, .output_tokens = 7, .token_seed = 3},
                /*vocab_size=*/11);
  ASSERT_EQ(request.prompt.size(), 5000u);
  EXPECT_EQ(*request.max_tokens, 7);
  EXPECT_TRUE(request.ignore_eos);
  std::vector<int> counts(11, 0);
  for (const TokenId token : request.prompt) {
    ASSERT_GE(token, 0);
    ASSERT_LT(token, 11);
    ++counts[token];
  }
  // 5000 / 11 = 455, with a standard deviation of 20.
  for (const int count : counts) EXPECT_NEAR(count, 455, 120);
  EXPECT_EQ(RandomTokens(3, 5000, 11), request.prompt);
  EXPECT_NE(RandomTokens(4, 5000, 11), request.prompt);
}

}  // namespace
}  // namespace folio
