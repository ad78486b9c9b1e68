// Sharing of pages: prefixes, forks, eviction, and a naive twin of all of it.

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cache/kv_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using Tokens = std::vector<TokenId>;

KvLayout LayoutOf(int page_size) {
  return KvLayout({.num_layers = 1, .num_kv_heads = 1, .head_dim = 1},
                  page_size);
}

Tokens Counting(int count, TokenId first = 0) {
  Tokens tokens(count);
  for (int i = 0; i < count; ++i) tokens[i] = first + i;
  return tokens;
}

class PrefixCacheTest : public testing::Test {
 protected:
  void Make(int num_pages, const KvCacheOptions& options = {}) {
    cache_ = std::make_unique<KvCache>(LayoutOf(4), num_pages, options);
  }

  // What a request that computes `tokens` leaves in the cache.
  int32_t Run(const Tokens& tokens, const std::string& salt = "") {
    PageTable table;
    const int32_t cached = cache_->AttachPrefix(table, tokens, salt);
    EXPECT_TRUE(cache_->Grow(table, static_cast<int64_t>(tokens.size())));
    cache_->RegisterPrefix(table, tokens, salt);
    cache_->Release(table);
    cache_->CheckInvariants();
    return cached;
  }

  int32_t Cached(const Tokens& tokens, const std::string& salt = "") {
    PrefixMatch match;
    cache_->FindPrefix(tokens, salt, match);
    return match.num_tokens;
  }

  std::unique_ptr<KvCache> cache_;
};

TEST_F(PrefixCacheTest, FindsFullPagesButNeverTheLastToken) {
  Make(10);
  EXPECT_EQ(Run(Counting(10)), 0);
  EXPECT_EQ(cache_->num_cached(), 2);  // And the third was not full.
  EXPECT_EQ(cache_->num_free(), 8);
  for (const auto& [length, found] :
       std::map<int, int>{{1, 0}, {4, 0}, {5, 4}, {8, 4}, {9, 8}, {12, 8}}) {
    EXPECT_EQ(Cached(Counting(length)), found) << length;
  }
  EXPECT_EQ(Cached({}), 0);
  Tokens other = Counting(12);
  other[5] = 99;
  EXPECT_EQ(Cached(other), 4);
  other[0] = 99;
  EXPECT_EQ(Cached(other), 0);
}

TEST_F(PrefixCacheTest, TheSameTokensElsewhereAreNotTheSame) {
  Make(10);
  Run({1, 2, 3, 4, 1, 2, 3, 4});
  // The second page holds the tokens of the first, after other tokens.
  EXPECT_EQ(Cached({1, 2, 3, 4, 1, 2, 3, 4, 9}), 8);
  EXPECT_EQ(Cached({5, 5, 5, 5, 1, 2, 3, 4, 9}), 0);
  EXPECT_EQ(Cached({1, 2, 3, 4, 5, 5, 5, 5, 9}), 4);
}

TEST_F(PrefixCacheTest, SaltsShareNothing) {
  Make(20);
  Run(Counting(9), "model/a");
  EXPECT_EQ(Cached(Counting(9), "model/a"), 8);
  EXPECT_EQ(Cached(Counting(9), "model/b"), 0);
  EXPECT_EQ(Cached(Counting(9), "model/"), 0);
  EXPECT_EQ(Run(Counting(9), "model/b"), 0);
  EXPECT_EQ(cache_->num_cached(), 4);
}

TEST_F(PrefixCacheTest, OffFindsNothing) {
  Make(10, {.prefix_cache = false});
  EXPECT_EQ(Run(Counting(9)), 0);
  EXPECT_EQ(Run(Counting(9)), 0);
  EXPECT_EQ(cache_->num_free(), 10);
}

// Pages collide; salts, which come byte by byte, do not.
TEST_F(PrefixCacheTest, CollisionsFindNothingWrong) {
  const auto hash = [](uint64_t before, std::span<const TokenId> tokens) {
    return tokens.size() == 1 ? HashTokens(before, tokens) : uint64_t{1};
  };
  Make(10, {.prefix_hash = hash});
  Run(Counting(9), "a");
  EXPECT_EQ(Cached(Counting(9), "a"), 4);  // The second page can't be found.
  EXPECT_EQ(Cached(Counting(9, 50), "a"), 0);
  EXPECT_EQ(Cached(Counting(9), "b"), 0);
  EXPECT_EQ(cache_->num_free() + cache_->num_cached(), 10);
}

TEST_F(PrefixCacheTest, AttachedPagesAreInUseAndCountOnce) {
  Make(10);
  Run(Counting(9));
  PageTable a;
  PageTable b;
  EXPECT_EQ(cache_->AttachPrefix(a, Counting(9), ""), 8);
  EXPECT_EQ(cache_->AttachPrefix(b, Counting(9), ""), 8);
  EXPECT_EQ(cache_->num_in_use(), 2);
  EXPECT_EQ(cache_->num_cached(), 0);
  EXPECT_EQ(cache_->NumDuplicatesSaved(), 2);
  EXPECT_EQ(cache_->NumHolders(a.pages()[0]), 2);
  EXPECT_EQ(cache_->Release(a), 0);
  EXPECT_EQ(cache_->Release(b), 2);
  EXPECT_EQ(cache_->num_cached(), 2);
  EXPECT_EQ(cache_->counters().prefix_hit_tokens, 16);
  EXPECT_EQ(cache_->counters().prefix_query_tokens, 9 + 9 + 9);
}

// Two that compute the same at the same time end with one copy.
TEST_F(PrefixCacheTest, RegisteringWhatIsKnownTakesTheKnownPage) {
  Make(10);
  PageTable a;
  PageTable b;
  ASSERT_TRUE(cache_->Grow(a, 10));
  ASSERT_TRUE(cache_->Grow(b, 10));
  cache_->RegisterPrefix(a, Counting(8), "");
  cache_->RegisterPrefix(b, Counting(10), "");
  EXPECT_EQ(b.pages()[0], a.pages()[0]);
  EXPECT_EQ(b.pages()[1], a.pages()[1]);
  EXPECT_NE(b.pages()[2], a.pages()[2]);
  EXPECT_EQ(cache_->num_in_use(), 4);
  cache_->CheckInvariants();
  cache_->Release(a);
  cache_->Release(b);
  EXPECT_EQ(cache_->num_cached(), 2);
}

TEST_F(PrefixCacheTest, TheLeastRecentlyUsedGoesFirstLeavesBeforeParents) {
  Make(6);
  Run(Counting(8, 0));    // Pages of A: two.
  Run(Counting(8, 100));  // B: two.
  Run(Counting(8, 200));  // C: two; the pool is full of cached pages.
  EXPECT_EQ(cache_->num_cached(), 6);
  EXPECT_EQ(Run(Counting(5, 0)), 4);  // A's first page is used again.
  EXPECT_EQ(Cached(Counting(9, 0)), 4) << "for which A's leaf was given up";
  EXPECT_EQ(cache_->num_free(), 1);
  PageTable table;
  ASSERT_TRUE(cache_->Grow(table, 4));
  EXPECT_EQ(Cached(Counting(9, 100)), 8);
  ASSERT_TRUE(cache_->Grow(table, 8));
  EXPECT_EQ(Cached(Counting(9, 100)), 4) << "B's leaf";
  ASSERT_TRUE(cache_->Grow(table, 12));
  EXPECT_EQ(Cached(Counting(9, 100)), 0) << "B's root";
  EXPECT_EQ(Cached(Counting(9, 200)), 8);
  EXPECT_EQ(Cached(Counting(9, 0)), 4);
  EXPECT_FALSE(cache_->Grow(table, 28));
  ASSERT_TRUE(cache_->Grow(table, 24));
  EXPECT_EQ(cache_->num_cached(), 0);
  cache_->CheckInvariants();
  cache_->Release(table);
  EXPECT_EQ(cache_->num_free(), 6);
}

TEST_F(PrefixCacheTest, FlushForgetsAllAlsoWhatIsInUse) {
  Make(10);
  Run(Counting(9));
  PageTable table;
  ASSERT_EQ(cache_->AttachPrefix(table, Counting(7), ""), 4);
  EXPECT_EQ(cache_->FlushPrefixCache(), 1);
  EXPECT_EQ(Cached(Counting(9)), 0);
  EXPECT_EQ(cache_->num_in_use(), 1);
  cache_->CheckInvariants();
  ASSERT_TRUE(cache_->Grow(table, 8));
  cache_->RegisterPrefix(table, Counting(8), "");
  EXPECT_EQ(Cached(Counting(9)), 0);  // Its parent is not findable.
  cache_->Release(table);
  cache_->CheckInvariants();
  EXPECT_EQ(Run(Counting(9)), 0);
  EXPECT_EQ(Run(Counting(9)), 8);
}

// Pages of 4, window 6: the token at p sees p - 5 .. p.
TEST_F(PrefixCacheTest, AHitNeedsOnlyThePagesInTheWindow) {
  Make(/*num_pages=*/8, {.window = 6});
  PageTable table;
  for (int count = 4; count <= 20; count += 4) {
    ASSERT_TRUE(cache_->Grow(table, count));
    cache_->RegisterPrefix(table, Counting(count), "");
    cache_->ReleaseBeforeWindow(table, count);
  }
  // The token at 20 sees 15 and up: pages 3 and 4. The others are cached.
  EXPECT_EQ(cache_->num_in_use(), 2);
  EXPECT_EQ(cache_->num_cached(), 3);
  PageTable other;
  ASSERT_TRUE(cache_->Grow(other, 24));  // Evicts the three.
  EXPECT_EQ(cache_->num_cached(), 0);
  EXPECT_EQ(Cached(Counting(20)), 0);  // Up to 16 needs page 2.
  EXPECT_EQ(Cached(Counting(21)), 20);
  PageTable again;
  EXPECT_EQ(cache_->AttachPrefix(again, Counting(21), ""), 20);
  EXPECT_EQ(again.num_vacated(), 3);
  EXPECT_EQ(again.num_pages(), 2);
  EXPECT_EQ(cache_->num_in_use(), 2 + 6);
  cache_->CheckInvariants();
  cache_->Release(again);
  cache_->Release(table);
  cache_->Release(other);
  cache_->CheckInvariants();
}

TEST_F(PrefixCacheTest, ForksShareUntilOneWrites) {
  Make(10);
  PageTable first;
  ASSERT_TRUE(cache_->Grow(first, 6));
  PageTable second;
  PageTable third;
  cache_->Fork(first, second);
  cache_->Fork(first, third);
  EXPECT_EQ(cache_->num_in_use(), 2);
  EXPECT_EQ(cache_->NumDuplicatesSaved(), 4);
  EXPECT_TRUE(cache_->NeedsCopy(first, 6));
  EXPECT_FALSE(cache_->NeedsCopy(first, 8));  // No page is there yet.
  const PageId shared = first.pages()[1];
  const PageCopy copy = cache_->CopyOnWrite(first, 6);
  EXPECT_EQ(copy.from, shared);
  EXPECT_EQ(copy.to, first.pages()[1]);
  EXPECT_FALSE(cache_->NeedsCopy(first, 6));
  cache_->CopyOnWrite(third, 6);
  EXPECT_FALSE(cache_->NeedsCopy(second, 6));  // The last one keeps it.
  EXPECT_EQ(second.pages()[1], shared);
  EXPECT_EQ(cache_->counters().pages_copied, 2);
  cache_->CheckInvariants();
  for (PageTable* table : {&first, &second, &third}) cache_->Release(*table);
  EXPECT_EQ(cache_->num_free(), 10);
}

// What the contract says, in the plainest way: pages have contents, tables are
// lists of pages, a cached page is one that nobody lists but whose contents are
// remembered, with the time when it was last let go of.
class NaiveCache {
 public:
  struct Page {
    std::string prefix;  // Of which it is the last page; "": not findable.
    int64_t let_go = -1;
  };

  NaiveCache(int page_size, int num_pages)
      : page_size_(page_size), pages_(num_pages) {}

  static std::string Name(const Tokens& tokens, size_t count) {
    std::string name = "p";
    for (size_t i = 0; i < count; ++i) name += std::to_string(tokens[i]) + ",";
    return name;
  }

  int Holders(int page) const {
    int count = 0;
    for (const auto& table : tables) {
      count += static_cast<int>(std::ranges::count(table, page));
    }
    return count;
  }

  int Find(const std::string& prefix) const {
    for (size_t i = 0; i < pages_.size(); ++i) {
      if (pages_[i].prefix == prefix) return static_cast<int>(i);
    }
    return -1;
  }

  int NumCached() const {
    int count = 0;
    for (size_t i = 0; i < pages_.size(); ++i) {
      count += !pages_[i].prefix.empty() && Holders(static_cast<int>(i)) == 0;
    }
    return count;
  }

  int NumInUse() const {
    int count = 0;
    for (size_t i = 0; i < pages_.size(); ++i) {
      count += Holders(static_cast<int>(i)) > 0;
    }
    return count;
  }

  int NumFree() const {
    return static_cast<int>(pages_.size()) - NumCached() - NumInUse();
  }

  int Attach(int table, const Tokens& tokens) {
    const size_t most = (tokens.size() - 1) / page_size_;
    for (size_t i = 0; i < most; ++i) {
      const int page = Find(Name(tokens, (i + 1) * page_size_));
      if (page < 0) break;
      tables[table].push_back(page);
    }
    return static_cast<int>(tables[table].size()) * page_size_;
  }

  int Allocate() {
    int oldest = -1;
    for (int i = 0; i < static_cast<int>(pages_.size()); ++i) {
      if (Holders(i) > 0) continue;
      if (pages_[i].prefix.empty()) return i;
      if (oldest < 0 || pages_[i].let_go < pages_[oldest].let_go) oldest = i;
    }
    pages_[oldest] = Page();
    return oldest;
  }

  bool Grow(int table, size_t num_tokens) {
    const size_t wanted = (num_tokens + page_size_ - 1) / page_size_;
    if (wanted > tables[table].size() &&
        static_cast<int>(wanted - tables[table].size()) >
            NumFree() + NumCached()) {
      return false;
    }
    while (tables[table].size() < wanted) tables[table].push_back(Allocate());
    return true;
  }

  void Register(int table, const Tokens& tokens) {
    for (size_t i = 0; i < tokens.size() / page_size_; ++i) {
      const std::string name = Name(tokens, (i + 1) * page_size_);
      const int known = Find(name);
      if (known < 0) {
        pages_[tables[table][i]].prefix = name;
      } else {
        tables[table][i] = known;
      }
    }
  }

  void Release(int table) {
    while (!tables[table].empty()) {
      const int page = tables[table].back();
      tables[table].pop_back();
      if (Holders(page) == 0) pages_[page].let_go = clock_++;
    }
  }

  std::array<std::vector<int>, 4> tables;

 private:
  const size_t page_size_;
  std::vector<Page> pages_;
  int64_t clock_ = 0;
};

TEST(PrefixCacheTwin, AgreesWithItsNaiveTwin) {
  int64_t num_hits = 0;
  int64_t num_evictions = 0;
  for (int seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto draw = [&](int most) {
      return static_cast<int>(random() % most);
    };
    const int page_size = 1 + draw(4);
    const int num_pages = 4 + draw(20);
    const int vocab = 1 + draw(2);  // So that prefixes come again.
    KvCache real(LayoutOf(page_size), num_pages);
    NaiveCache naive(page_size, num_pages);
    std::array<PageTable, 4> tables;
    std::array<Tokens, 4> tokens;
    for (int step = 0; step < 200; ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step);
      const int t = draw(4);
      if (tokens[t].empty()) {
        tokens[t].resize(1 + draw(12));
        for (TokenId& token : tokens[t]) token = draw(vocab);
        ASSERT_EQ(real.AttachPrefix(tables[t], tokens[t], "salt"),
                  naive.Attach(t, tokens[t]));
      } else if (draw(4) == 0) {
        real.Release(tables[t]);
        naive.Release(t);
        tokens[t].clear();
      } else {
        tokens[t].push_back(draw(vocab));
      }
      const bool grown = real.Grow(tables[t], tokens[t].size());
      ASSERT_EQ(grown, naive.Grow(t, tokens[t].size()));
      if (grown) {
        real.RegisterPrefix(tables[t], tokens[t], "salt");
        naive.Register(t, tokens[t]);
      } else {
        real.Release(tables[t]);
        naive.Release(t);
        tokens[t].clear();
      }
      real.CheckInvariants();
      ASSERT_EQ(real.num_cached(), naive.NumCached());
      ASSERT_EQ(real.num_in_use(), naive.NumInUse());
      ASSERT_EQ(real.num_free(), naive.NumFree());
      int64_t entries = 0;
      for (const auto& table : naive.tables) entries += table.size();
      ASSERT_EQ(real.NumDuplicatesSaved(), entries - naive.NumInUse());
    }
    for (PageTable& table : tables) real.Release(table);
    num_hits += real.counters().prefix_hit_tokens;
    num_evictions += real.counters().pages_evicted;
  }
  EXPECT_GT(num_hits, 1000);
  EXPECT_GT(num_evictions, 1000);
}

TEST(EvictionPolicyDeath, HoldsCallersToTheContract) {
  EvictionPolicy policy(3);
  EXPECT_DEATH(policy.Next(), "no page is cached");
  policy.Add(PageId{1});
  EXPECT_DEATH(policy.Add(PageId{1}), "cached already");
  EXPECT_DEATH(policy.Remove(PageId{2}), "not cached");
}

}  // namespace
}  // namespace folio
