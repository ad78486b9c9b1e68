#include "cache/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <vector>

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

KvLayout LayoutOf(int page_size) {
  return KvLayout({.num_layers = 1, .num_kv_heads = 1, .head_dim = 1},
                  page_size);
}

// A pool of free page numbers and a list for each table: what the contract
// says, in the plainest way.
struct NaiveCache {
  int page_size;
  std::vector<int> free;  // The front is handed out next.
  std::array<std::vector<int>, 5> tables;

  NaiveCache(int size, int num_pages) : page_size(size) {
    for (int i = 0; i < num_pages; ++i) free.push_back(i);
  }

  bool Grow(int table, int num_tokens) {
    std::vector<int> pages = tables[table];
    std::vector<int> left = free;
    while (static_cast<int>(pages.size()) * page_size < num_tokens) {
      if (left.empty()) return false;
      pages.push_back(left.front());
      left.erase(left.begin());
    }
    tables[table] = pages;
    free = left;
    return true;
  }

  int Release(int table) {
    const int count = static_cast<int>(tables[table].size());
    free.insert(free.begin(), tables[table].begin(), tables[table].end());
    tables[table].clear();
    return count;
  }
};

// A KvCache with tables, and its twin.
class Twins {
 public:
  Twins(int page_size, int num_pages)
      : real_(LayoutOf(page_size), num_pages), naive_(page_size, num_pages) {}

  void Grow(int table, int num_tokens) {
    ASSERT_EQ(real_.Grow(tables_[table], num_tokens),
              naive_.Grow(table, num_tokens));
  }

  void Release(int table) {
    ASSERT_EQ(real_.Release(tables_[table]), naive_.Release(table));
  }

  void Compare() {
    real_.CheckInvariants();
    ASSERT_EQ(real_.num_free(), static_cast<int>(naive_.free.size()));
    for (int t = 0; t < num_tables(); ++t) {
      const std::vector<int>& expected = naive_.tables[t];
      ASSERT_EQ(tables_[t].num_pages(), static_cast<int>(expected.size()));
      for (int p = 0; p < tables_[t].num_pages() * naive_.page_size; ++p) {
        const Slot slot = real_.SlotOf(tables_[t], p);
        ASSERT_EQ(ToIndex(slot.page), expected[p / naive_.page_size]);
        ASSERT_EQ(slot.offset, p % naive_.page_size);
      }
    }
  }

  int num_tables() const { return static_cast<int>(tables_.size()); }

 private:
  KvCache real_;
  NaiveCache naive_;
  std::array<PageTable, 5> tables_;
};

TEST(KvCache, AgreesWithItsNaiveTwin) {
  for (int seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const int page_size = 1 + static_cast<int>(random() % 9);
    const int num_pages = static_cast<int>(random() % 40);
    // Some seeds never release: the pool runs full and stays so. In others only
    // growth by one token happens.
    const bool releases = random() % 4 != 0;
    const bool leaps = random() % 2 != 0;
    Twins twins(page_size, num_pages);
    std::array<int, 5> wanted = {};
    for (int step = 0; step < 300; ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step);
      const int table = static_cast<int>(random() % twins.num_tables());
      if (random() % 8 == 0) {
        if (!releases) continue;
        twins.Release(table);
        wanted[table] = 0;
      } else {
        wanted[table] += leaps ? static_cast<int>(random() % 20) : 1;
        twins.Grow(table, wanted[table]);
      }
      twins.Compare();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(KvCache, GrowsByWholePagesAndNeverShrinks) {
  KvCache cache(LayoutOf(16), 4);
  PageTable table;
  EXPECT_TRUE(cache.Grow(table, 0));
  EXPECT_THAT(table.pages(), IsEmpty());
  EXPECT_TRUE(cache.Grow(table, 17));
  EXPECT_THAT(table.pages(), ElementsAre(PageId{0}, PageId{1}));
  EXPECT_TRUE(cache.Grow(table, 32));
  EXPECT_TRUE(cache.Grow(table, 1));
  EXPECT_EQ(table.num_pages(), 2);
  EXPECT_EQ(cache.num_free(), 2);
  EXPECT_EQ(cache.CapacityTokens(), 64);
  EXPECT_EQ(cache.Release(table), 2);
}

TEST(KvCache, FailingToGrowChangesNothing) {
  KvCache cache(LayoutOf(16), 4);
  PageTable table;
  ASSERT_TRUE(cache.Grow(table, 16));
  EXPECT_FALSE(cache.Grow(table, 65));
  EXPECT_THAT(table.pages(), ElementsAre(PageId{0}));
  EXPECT_EQ(cache.num_free(), 3);
  EXPECT_FALSE(cache.Grow(table, std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(table.num_pages(), 1);
  EXPECT_TRUE(cache.Grow(table, 64));
  EXPECT_EQ(cache.Release(table), 4);
}

TEST(KvCache, AReleasedTableGrowsAgainWithTheSamePages) {
  KvCache cache(LayoutOf(1), 5);
  PageTable table;
  ASSERT_TRUE(cache.Grow(table, 3));
  EXPECT_EQ(cache.Release(table), 3);
  EXPECT_EQ(cache.Release(table), 0);
  ASSERT_TRUE(cache.Grow(table, 4));
  EXPECT_THAT(table.pages(),
              ElementsAre(PageId{0}, PageId{1}, PageId{2}, PageId{3}));
  cache.Release(table);
}

// Pages of 4, window 6: the token at p sees p - 5 .. p.
TEST(KvCacheWindow, GivesBackWhatNoTokenToComeSees) {
  KvCache cache(LayoutOf(4), 10, {.window = 6});
  PageTable table;
  ASSERT_TRUE(cache.Grow(table, 20));
  EXPECT_EQ(cache.ReleaseBeforeWindow(table, 8), 0);  // Sees 3: in page 0.
  EXPECT_EQ(cache.ReleaseBeforeWindow(table, 9), 1);  // Sees 4 to 9.
  EXPECT_EQ(cache.ReleaseBeforeWindow(table, 9), 0);
  EXPECT_EQ(cache.num_free(), 6);
  EXPECT_EQ(table.num_entries(), 5);
  EXPECT_EQ(table.num_pages(), 4);
  EXPECT_EQ(table.pages()[0], kNoPage);
  EXPECT_EQ(cache.TokensHeld(table, 18), 14);
  EXPECT_EQ(cache.SlotOf(table, 7).offset, 3);
  EXPECT_EQ(cache.ReleaseBeforeWindow(table, 20), 2);  // Sees 15: in page 3.
  EXPECT_TRUE(cache.Grow(table, 21));
  EXPECT_EQ(table.num_entries(), 6);
  EXPECT_EQ(cache.Release(table), 3);
  EXPECT_EQ(cache.num_free(), 10);
  EXPECT_EQ(table.num_entries(), 0);
  // As good as new.
  EXPECT_TRUE(cache.Grow(table, 4));
  EXPECT_EQ(cache.SlotOf(table, 0).offset, 0);
  cache.Release(table);
}

TEST(KvCacheWindow, KnowsHowManyPagesAWindowNeeds) {
  for (int32_t page_size : {1, 4, 7}) {
    for (int32_t window = 1; window < 30; ++window) {
      KvCache cache(LayoutOf(page_size), 0, {.window = window});
      int64_t most = 0;
      for (int64_t p = 0; p < 100; ++p) {
        const int64_t first = std::max<int64_t>(0, p - window + 1);
        most = std::max(most, p / page_size - first / page_size + 1);
        // A sequence of p + 1 tokens: its worst token so far.
        EXPECT_LE(most, cache.PagesInWindow(p + 1));
      }
      EXPECT_EQ(most, cache.PagesInWindow(100));
    }
  }
}

TEST(KvCacheWindow, APoolThatHoldsAWindowHoldsAnySequence) {
  // A window of 6 in pages of 4 spans three pages at worst.
  EXPECT_EQ(KvCache(LayoutOf(4), 2, {.window = 6}).CapacityTokens(), 8);
  EXPECT_GT(KvCache(LayoutOf(4), 3, {.window = 6}).CapacityTokens(),
            int64_t{1} << 60);
  EXPECT_EQ(KvCache(LayoutOf(4), 3).CapacityTokens(), 12);
}

TEST(KvCacheDeath, HoldsCallersToTheContract) {
  KvCache cache(LayoutOf(16), 4);
  PageTable table;
  EXPECT_DEATH((void)cache.Grow(table, -1), "num_tokens >= 0");
  EXPECT_DEATH(cache.SlotOf(table, 0), "position 0 in a table of 0 pages");
  ASSERT_TRUE(cache.Grow(table, 1));
  EXPECT_EQ(cache.SlotOf(table, 15).offset, 15);
  EXPECT_DEATH(cache.SlotOf(table, 16), "position 16 in a table of 1 pages");
  EXPECT_DEATH(cache.SlotOf(table, -1), "position -1");
  cache.Release(table);
}

TEST(KvCache, ReservedTablesGrowWithoutMovingAndHoldNothing) {
  KvCache cache(LayoutOf(4), 100);
  PageTable table;
  cache.Reserve(table, 33);
  EXPECT_EQ(table.num_entries(), 0);
  EXPECT_EQ(cache.num_free(), 100);
  ASSERT_TRUE(cache.Grow(table, 1));
  const PageId* const entries = table.pages().data();
  for (int tokens = 2; tokens <= 36; ++tokens) {
    ASSERT_TRUE(cache.Grow(table, tokens));
    EXPECT_EQ(table.pages().data(), entries) << tokens << " tokens";
  }
  EXPECT_EQ(table.num_pages(), 9);
  cache.Release(table);
}

}  // namespace
}  // namespace folio
