#include "bench/load/load.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

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

TEST(ToRequestTest, KeepsTenantAndPriority) {
  const Request request = ToRequest({.tenant = "a", .priority = -2}, 11);
  EXPECT_EQ(request.tenant, "a");
  EXPECT_EQ(request.priority, -2);
  EXPECT_EQ(request.n, 1);
  EXPECT_EQ(request.deadline, absl::InfiniteFuture());
}

TEST(PromptTokensTest, BeginWithThoseOfThePrefix) {
  const LoadRequest request{.prompt_tokens = 7,
                            .token_seed = 3,
                            .prefix_seed = 4,
                            .prefix_tokens = 50};
  const std::vector<TokenId> tokens = PromptTokens(request, 1000);
  const std::span<const TokenId> all(tokens);
  ASSERT_EQ(all.size(), 57u);
  EXPECT_THAT(all.first(50), ElementsAreArray(RandomTokens(4, 50, 1000)));
  EXPECT_THAT(all.last(7), ElementsAreArray(RandomTokens(3, 7, 1000)));
  // Whoever has a shorter one shares what there is of it.
  EXPECT_THAT(all.first(20), ElementsAreArray(RandomTokens(4, 20, 1000)));
  EXPECT_EQ(ToRequest(request, 1000).prompt, tokens);
}

TEST(CheckPlainTest, NamesTheFirstThatIsNot) {
  const LoadRequest plain{.arrival = absl::Seconds(1),
                          .prompt_tokens = 7,
                          .output_tokens = 8,
                          .token_seed = 9,
                          .prefix_seed = 10,
                          .prefix_tokens = 11,
                          .tenant = "a",
                          .priority = 12};
  std::vector<LoadRequest> load(4, plain);
  EXPECT_TRUE(CheckPlain(load).ok());
  EXPECT_TRUE(CheckPlain({}).ok());

  const auto expect = [&](const LoadRequest& odd, const std::string& what) {
    load[2] = odd;
    const absl::Status status = CheckPlain(load);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(),
                HasSubstr("request 2 of the load (from 0) has " + what + ";"));
    EXPECT_DEATH(ToRequest(odd, 11), what);
  };
  expect({.prompt_text = "Hello"}, "a text as its prompt");
  expect({.n = 2}, "several samples");
  expect({.deadline = absl::Seconds(1)}, "a deadline");
  expect({.cancel_after = absl::ZeroDuration()}, "a time to be cancelled");
  expect({.read_delay = absl::Seconds(1)}, "a slow reader");
  expect({.previous = 0}, "a turn before it");
}

}  // namespace
}  // namespace folio
