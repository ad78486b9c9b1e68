#include "cache/page_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace folio {
namespace {

using ::testing::ElementsAre;

// What the contract says, in the plainest way: a count for each page in use,
// and the free pages in the order they will be handed out.
class NaiveAllocator {
 public:
  explicit NaiveAllocator(int num_pages) {
    for (int i = 0; i < num_pages; ++i) free_.push_back(i);
  }

  bool Allocate(int count, std::vector<int>& pages) {
    if (count > static_cast<int>(free_.size())) return false;
    pages.assign(free_.begin(), free_.begin() + count);
    free_.erase(free_.begin(), free_.begin() + count);
    for (const int page : pages) counts_[page] = 1;
    return true;
  }
  void AddReference(int page) { ++counts_.at(page); }
  bool Release(int page) {
    if (--counts_.at(page) > 0) return false;
    counts_.erase(page);
    free_.insert(free_.begin(), page);
    return true;
  }
  int count(int page) const {
    return counts_.contains(page) ? counts_.at(page) : 0;
  }
  int num_free() const { return static_cast<int>(free_.size()); }
  int num_in_use() const { return static_cast<int>(counts_.size()); }

 private:
  std::map<int, int> counts_;
  std::vector<int> free_;  // The front is handed out next.
};

// Both allocators side by side; every operation is done on both and compared.
class Twins {
 public:
  explicit Twins(int num_pages) : real_(num_pages), naive_(num_pages) {}

  void Allocate(int count) {
    std::vector<PageId> pages(count, PageId{-7});
    std::vector<int> expected(count, -7);
    ASSERT_EQ(real_.Allocate(pages), naive_.Allocate(count, expected));
    for (int i = 0; i < count; ++i) ASSERT_EQ(ToIndex(pages[i]), expected[i]);
    if (count > 0 && expected[0] == -7) return;
    references_.insert(references_.end(), expected.begin(), expected.end());
  }

  void AddReference(std::mt19937_64& random) {
    if (references_.empty()) return;
    const int page = references_[random() % references_.size()];
    real_.AddReference(PageId{page});
    naive_.AddReference(page);
    references_.push_back(page);
  }

  void Release(std::mt19937_64& random) {
    if (references_.empty()) return;
    const size_t i = random() % references_.size();
    const int page = references_[i];
    ASSERT_EQ(real_.Release(PageId{page}), naive_.Release(page));
    references_.erase(references_.begin() + i);
  }

  void Compare() {
    real_.CheckInvariants();
    ASSERT_EQ(real_.num_free(), naive_.num_free());
    ASSERT_EQ(real_.num_in_use(), naive_.num_in_use());
    for (int page = 0; page < real_.num_pages(); ++page) {
      ASSERT_EQ(real_.reference_count(PageId{page}), naive_.count(page));
    }
  }

  int num_free() const { return naive_.num_free(); }

 private:
  PageAllocator real_;
  NaiveAllocator naive_;
  std::vector<int> references_;  // A page as often as it is referenced.
};

TEST(PageAllocator, AgreesWithItsNaiveTwin) {
  for (int seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    // Some kinds of operation are off in a seed, so that the pool also runs
    // full, runs empty and stays unshared for long.
    const bool kinds[] = {random() % 4 != 0, random() % 2 != 0,
                          random() % 3 != 0};
    const int num_pages = static_cast<int>(random() % 40);
    Twins twins(num_pages);
    for (int step = 0; step < 300; ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step);
      const int kind = static_cast<int>(random() % 3);
      if (!kinds[kind]) continue;
      if (kind == 0) twins.Allocate(static_cast<int>(random() % 6));
      if (kind == 1) twins.AddReference(random);
      if (kind == 2) twins.Release(random);
      twins.Compare();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(PageAllocator, HandsOutInOrderThenMostRecentlyFreedFirst) {
  PageAllocator allocator(4);
  std::vector<PageId> pages(3);
  ASSERT_TRUE(allocator.Allocate(pages));
  EXPECT_THAT(pages, ElementsAre(PageId{0}, PageId{1}, PageId{2}));
  EXPECT_TRUE(allocator.Release(PageId{1}));
  EXPECT_TRUE(allocator.Release(PageId{0}));
  ASSERT_TRUE(allocator.Allocate(pages));
  EXPECT_THAT(pages, ElementsAre(PageId{0}, PageId{1}, PageId{3}));
}

TEST(PageAllocator, FailingChangesNothing) {
  PageAllocator allocator(2);
  std::vector<PageId> pages(3, PageId{-7});
  EXPECT_FALSE(allocator.Allocate(pages));
  EXPECT_THAT(pages, ElementsAre(PageId{-7}, PageId{-7}, PageId{-7}));
  EXPECT_EQ(allocator.num_free(), 2);
  allocator.CheckInvariants();
}

TEST(PageAllocator, CanBeEmpty) {
  PageAllocator allocator(0);
  PageId page;
  EXPECT_FALSE(allocator.Allocate({&page, 1}));
  EXPECT_TRUE(allocator.Allocate({}));
  allocator.CheckInvariants();
}

TEST(PageAllocatorDeath, HoldsCallersToTheContract) {
  EXPECT_DEATH(PageAllocator(-1), "num_pages >= 0");
  PageAllocator allocator(2);
  EXPECT_DEATH(allocator.Release(PageId{0}), "page 0 is free");
  EXPECT_DEATH(allocator.AddReference(PageId{1}), "page 1 is free");
  EXPECT_DEATH(allocator.reference_count(PageId{2}), "no page 2 among 2");
  EXPECT_DEATH(allocator.reference_count(PageId{-1}), "no page -1 among 2");
}

}  // namespace
}  // namespace folio
