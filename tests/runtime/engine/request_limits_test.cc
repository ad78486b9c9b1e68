#include "runtime/engine/request_limits.h"

#include <cmath>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr RequestLimits kLimits = {
    .vocab_size = 100, .context_length = 50, .pool_tokens = 40};

Request Good() {
  Request request;
  request.prompt = {1, 2, 3};
  return request;
}

std::string ErrorOf(const Request& request,
                    const RequestLimits& limits = kLimits) {
  const absl::Status status = limits.Check(request);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(RequestLimitsTest, GoodRequestPasses) {
  EXPECT_TRUE(kLimits.Check(Good()).ok());
  Request request = Good();
  request.prompt = {0, 99};
  request.max_tokens = 0;
  request.sampling = {
      .temperature = 2.5f, .top_k = 1000, .top_p = 0.001f, .logprobs = 20};
  EXPECT_TRUE(kLimits.Check(request).ok());
}

TEST(RequestLimitsTest, EmptyPrompt) {
  Request request = Good();
  request.prompt.clear();
  EXPECT_THAT(ErrorOf(request), HasSubstr("input: the prompt is empty"));
}

TEST(RequestLimitsTest, TokensOutsideTheVocabulary) {
  for (TokenId bad : {-1, 100, std::numeric_limits<TokenId>::max()}) {
    Request request = Good();
    request.prompt[2] = bad;
    EXPECT_THAT(ErrorOf(request),
                AllOf(HasSubstr("token_ids[2] is " + std::to_string(bad)),
                      HasSubstr("0 to 99")));
    request = Good();
    request.stop_tokens = {5, bad};
    EXPECT_THAT(ErrorOf(request),
                HasSubstr("stop_token_ids[1] is " + std::to_string(bad)));
  }
}

TEST(RequestLimitsTest, NumberOfStopTokens) {
  Request request = Good();
  request.stop_tokens.assign(256, 1);
  EXPECT_TRUE(kLimits.Check(request).ok());
  request.stop_tokens.push_back(1);
  EXPECT_THAT(ErrorOf(request), AllOf(HasSubstr("stop_token_ids has 257"),
                                      HasSubstr("at most 256")));
}

TEST(RequestLimitsTest, Temperature) {
  for (float bad : {std::nanf(""), -0.5f, HUGE_VALF, -HUGE_VALF}) {
    Request request = Good();
    request.sampling.temperature = bad;
    EXPECT_THAT(ErrorOf(request), HasSubstr("sampling.temperature is "));
  }
}

TEST(RequestLimitsTest, TopK) {
  for (int32_t bad : {-1, std::numeric_limits<int32_t>::min()}) {
    Request request = Good();
    request.sampling.top_k = bad;
    EXPECT_THAT(ErrorOf(request),
                AllOf(HasSubstr("sampling.top_k is " + std::to_string(bad)),
                      HasSubstr("at least 0")));
  }
}

TEST(RequestLimitsTest, TopP) {
  for (float bad : {std::nanf(""), 0.0f, -0.1f, 1.01f, HUGE_VALF}) {
    Request request = Good();
    request.sampling.top_p = bad;
    EXPECT_THAT(ErrorOf(request), AllOf(HasSubstr("sampling.top_p is "),
                                        HasSubstr("above 0 and at most 1")));
  }
}

TEST(RequestLimitsTest, Logprobs) {
  for (int32_t bad : {-1, 21}) {
    Request request = Good();
    request.sampling.logprobs = bad;
    EXPECT_THAT(ErrorOf(request), AllOf(HasSubstr("sampling.logprobs is "),
                                        HasSubstr("0 to 20")));
  }
  // There are no more alternatives than tokens.
  Request request = Good();
  request.prompt = {1};
  request.sampling.logprobs = 8;
  const RequestLimits small = {
      .vocab_size = 7, .context_length = 50, .pool_tokens = 40};
  EXPECT_THAT(ErrorOf(request, small), HasSubstr("0 to 7"));
}

TEST(RequestLimitsTest, MaxTokens) {
  Request request = Good();
  request.max_tokens = -1;
  EXPECT_THAT(ErrorOf(request), HasSubstr("max_tokens is -1"));
}

TEST(RequestLimitsTest, PromptAgainstContextAndPool) {
  Request request = Good();
  request.prompt.assign(39, 1);
  EXPECT_TRUE(kLimits.Check(request).ok());
  request.prompt.assign(40, 1);
  EXPECT_THAT(ErrorOf(request),
              AllOf(HasSubstr("input: the prompt has 40 tokens"),
                    HasSubstr("KV pool"), HasSubstr("at most 39")));
  const RequestLimits roomy = {
      .vocab_size = 100, .context_length = 50, .pool_tokens = 1000};
  request.prompt.assign(49, 1);
  EXPECT_TRUE(roomy.Check(request).ok());
  request.prompt.assign(50, 1);
  EXPECT_THAT(ErrorOf(request, roomy),
              AllOf(HasSubstr("input: the prompt has 50 tokens"),
                    HasSubstr("context"), HasSubstr("at most 49")));
}

}  // namespace
}  // namespace folio
