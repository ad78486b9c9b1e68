#include "runtime/tokenizer/bpe_merger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Symbols = std::vector<TokenId>;
using Rules = std::map<std::pair<TokenId, TokenId>, Merge>;

MergeTable TableOf(const Rules& rules) {
  MergeTable table;
  for (const auto& [pair, merge] : rules) {
    table.Add(pair.first, pair.second, merge);
  }
  return table;
}

// The definition: look at all pairs, join the best, begin again.
Symbols NaiveMerge(const Rules& rules, Symbols symbols) {
  while (true) {
    std::optional<size_t> best;
    int32_t best_rank = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto rule = rules.find({symbols[i], symbols[i + 1]});
      if (rule == rules.end()) continue;
      if (!best.has_value() || rule->second.rank < best_rank) {
        best = i;
        best_rank = rule->second.rank;
      }
    }
    if (!best.has_value()) return symbols;
    symbols[*best] = rules.at({symbols[*best], symbols[*best + 1]}).merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
  }
}

Symbols Merged(const Rules& rules, Symbols symbols) {
  BpeMerger merger;
  merger.Run(TableOf(rules), symbols);
  return symbols;
}

TEST(BpeMerger, JoinsByRankThenFromTheLeft) {
  // 1 2 -> 12 first, then 12 3 -> 123; 2 3 -> 23 is later than both.
  const Rules rules = {
      {{1, 2}, {0, 12}}, {{12, 3}, {1, 123}}, {{2, 3}, {2, 23}}};
  EXPECT_THAT(Merged(rules, {1, 2, 3}), ElementsAre(123));
  EXPECT_THAT(Merged(rules, {2, 3, 1, 2}), ElementsAre(23, 12));
  EXPECT_THAT(Merged(rules, {3, 3}), ElementsAre(3, 3));
  EXPECT_THAT(Merged(rules, {}), IsEmpty());
  EXPECT_THAT(Merged(rules, {1}), ElementsAre(1));
  EXPECT_THAT(Merged(rules, {1, -5, 2}), ElementsAre(1, -5, 2));
  // Overlapping equal pairs: the leftmost is joined.
  EXPECT_THAT(Merged({{{7, 7}, {0, 77}}}, {7, 7, 7}), ElementsAre(77, 7));
  // Two merges of one rank, as tokens of one score have.
  EXPECT_THAT(Merged({{{1, 2}, {4, 12}}, {{2, 3}, {4, 23}}}, {1, 2, 3}),
              ElementsAre(12, 3));
  EXPECT_THAT(Merged({{{1, 2}, {5, 12}}, {{2, 3}, {4, 23}}}, {1, 2, 3}),
              ElementsAre(1, 23));
}

TEST(MergeTable, TheFirstOfEqualPairsCounts) {
  MergeTable table;
  table.Add(1, 2, {0, 12});
  table.Add(1, 2, {9, 99});
  ASSERT_NE(table.Find(1, 2), nullptr);
  EXPECT_EQ(table.Find(1, 2)->merged, 12);
  EXPECT_EQ(table.Find(2, 1), nullptr);
  EXPECT_EQ(table.size(), 1u);
}

// Rules as training makes them: each joins two symbols that there are already.
// Symbols are strings over a small alphabet; equal strings are one symbol.
Rules RandomRules(std::mt19937_64& random, int num_letters, int num_ranks) {
  std::vector<std::string> texts;
  for (int i = 0; i < num_letters; ++i) {
    texts.emplace_back(1, static_cast<char>('a' + i));
  }
  Rules rules;
  for (int i = 0; i < 30; ++i) {
    const auto left = static_cast<TokenId>(random() % texts.size());
    const auto right = static_cast<TokenId>(random() % texts.size());
    const std::string text = texts[left] + texts[right];
    auto found = std::ranges::find(texts, text);
    if (found == texts.end()) found = texts.insert(texts.end(), text);
    rules.try_emplace({left, right},
                      Merge{static_cast<int32_t>(random() % num_ranks),
                            static_cast<TokenId>(found - texts.begin())});
  }
  return rules;
}

TEST(BpeMerger, AgreesWithTheDefinitionOnRandomRules) {
  for (int seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    const int num_letters = 1 + static_cast<int>(random() % 3);
    // With few ranks, there are many ties.
    const Rules rules =
        RandomRules(random, num_letters, random() % 2 == 0 ? 5 : 1000);
    Symbols symbols(random() % 40);
    for (TokenId& symbol : symbols) {
      symbol = static_cast<TokenId>(random() % num_letters);
    }
    ASSERT_EQ(Merged(rules, symbols), NaiveMerge(rules, symbols))
        << "seed " << seed;
  }
}

// Doubling rules, "a a", "aa aa" and so on: the longest chains of merges that n
// letters allow.
TEST(BpeMerger, WorkGrowsInProportionToALongRun) {
  Rules rules;
  for (TokenId id = 0; id < 20; ++id) rules[{id, id}] = {id, id + 1};
  const MergeTable table = TableOf(rules);
  for (const int size : {1 << 10, 1 << 14, (1 << 17) + 5}) {
    BpeMerger merger;
    Symbols symbols(size, 0);
    merger.Run(table, symbols);
    EXPECT_EQ(symbols.size(),
              static_cast<size_t>(std::popcount(static_cast<unsigned>(size))));
    // Every letter is in a candidate at first, and each of the fewer than
    // `size` merges makes at most two. Each costs O(log n).
    EXPECT_LT(merger.num_candidates(), 3 * int64_t{size});
  }
}

}  // namespace
}  // namespace folio
