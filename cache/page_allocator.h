// Which pages are free, and how many references each of the others has.

#ifndef CACHE_PAGE_ALLOCATOR_H_
#define CACHE_PAGE_ALLOCATOR_H_

#include <cstdint>
#include <span>
#include <vector>

#include "cache/page_table.h"

namespace folio {

// Hands out page ids; it knows nothing of bytes or tokens.
//
// Invariants:
//   1. A page is free if and only if its reference count is 0.
//   2. num_free() + num_in_use() == num_pages(); the two are counted apart.
//   3. A free page stands on the free list exactly once.
// Breaking a REQUIRES is a programming error and ends the process.
//
// The most recently freed page is handed out first: it is the likeliest to be
// in a CPU cache still, and the order is a function of the calls alone.
// Every operation is O(1) a page and allocates no memory. Not thread-safe.
class PageAllocator {
 public:
  // All pages start free, and come out in the order 0, 1, 2, ...
  // REQUIRES: num_pages >= 0.
  explicit PageAllocator(int32_t num_pages);

  // Fills `pages` with distinct pages, each with one reference. All or nothing:
  // on false (fewer than pages.size() are free) nothing has changed.
  [[nodiscard]] bool Allocate(std::span<PageId> pages);

  // REQUIRES: `page` is in use.
  void AddReference(PageId page);

  // Drops one reference; returns true when it was the last and the page is now
  // free. REQUIRES: `page` is in use.
  bool Release(PageId page);

  int32_t num_pages() const {
    return static_cast<int32_t>(reference_counts_.size());
  }
  int32_t num_free() const { return static_cast<int32_t>(free_list_.size()); }
  int32_t num_in_use() const { return num_in_use_; }
  // The sum of all reference counts.
  int64_t num_references() const { return num_references_; }

  // 0 for a free page. REQUIRES: 0 <= page < num_pages().
  int32_t reference_count(PageId page) const;

  // CHECKs the invariants above, in O(num_pages). For tests and debugging.
  void CheckInvariants() const;

 private:
  std::vector<int32_t> reference_counts_;
  std::vector<PageId> free_list_;  // A stack; the back is handed out next.
  int32_t num_in_use_ = 0;
  int64_t num_references_ = 0;
};

}  // namespace folio

#endif  // CACHE_PAGE_ALLOCATOR_H_
