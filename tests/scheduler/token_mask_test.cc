#include "scheduler/token_mask.h"

#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

// The tokens of a vocabulary of `size` that `mask` leaves.
std::vector<TokenId> Left(const TokenMask& mask, int32_t size) {
  std::vector<float> logits(size, 1.0f);
  mask.Apply(logits);
  std::vector<TokenId> left;
  for (TokenId token = 0; token < size; ++token) {
    if (logits[token] == 1.0f) {
      left.push_back(token);
    } else {
      EXPECT_EQ(logits[token], -std::numeric_limits<float>::infinity());
    }
  }
  return left;
}

TEST(AllowedTokensMaskTest, LeavesThemAndNoOthers) {
  const std::vector<std::vector<TokenId>> cases = {
      {0}, {9}, {0, 9}, {3, 4, 7}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}};
  for (const std::vector<TokenId>& allowed : cases) {
    const auto mask = MakeAllowedTokensMask(allowed);
    EXPECT_EQ(Left(*mask, 10), allowed);
    mask->Advance(5);
    EXPECT_EQ(Left(*mask->Clone(), 10), allowed);
  }
}

TEST(BadWordsMaskTest, ASingleTokenNeverComes) {
  const auto mask = MakeBadWordsMask({{2}});
  EXPECT_THAT(Left(*mask, 4), testing::ElementsAre(0, 1, 3));
  mask->Advance(2);
  EXPECT_THAT(Left(*mask, 4), testing::ElementsAre(0, 1, 3));
}

TEST(BadWordsMaskTest, OnlyTheLastTokenOfAWordIsRuledOut) {
  const auto mask = MakeBadWordsMask({{1, 1, 2}});
  EXPECT_THAT(Left(*mask, 4), testing::ElementsAre(0, 1, 2, 3));
  mask->Advance(1);
  EXPECT_THAT(Left(*mask, 4), testing::ElementsAre(0, 1, 2, 3));
  mask->Advance(1);
  EXPECT_THAT(Left(*mask, 4), testing::ElementsAre(0, 1, 3));
  // Of three ones the last two count.
  mask->Advance(1);
  EXPECT_THAT(Left(*mask, 4), testing::ElementsAre(0, 1, 3));
  mask->Advance(0);
  EXPECT_THAT(Left(*mask, 4), testing::ElementsAre(0, 1, 2, 3));
}

// Against the definition, over all that was generated.
TEST(BadWordsMaskTest, EqualsTheDefinitionOnRandomText) {
  constexpr int32_t kVocabulary = 4;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<std::vector<TokenId>> words(1 + random() % 4);
    for (std::vector<TokenId>& word : words) {
      word.resize(1 + random() % 4);
      for (TokenId& token : word) token = random() % kVocabulary;
    }
    auto mask = MakeBadWordsMask(words);
    std::vector<TokenId> text;
    for (int i = 0; i < 40; ++i) {
      std::set<TokenId> left = {0, 1, 2, 3};
      for (const std::vector<TokenId>& word : words) {
        std::vector<TokenId> end = text;
        end.push_back(word.back());
        if (end.size() >= word.size() &&
            std::equal(word.rbegin(), word.rend(), end.rbegin())) {
          left.erase(word.back());
        }
      }
      EXPECT_EQ(Left(*mask, kVocabulary),
                std::vector<TokenId>(left.begin(), left.end()));
      text.push_back(random() % kVocabulary);
      // A clone goes on where the original was.
      if (i % 7 == 3) mask = mask->Clone();
      mask->Advance(text.back());
    }
  }
}

}  // namespace
}  // namespace folio
