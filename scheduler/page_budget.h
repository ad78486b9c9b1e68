// What the pool would look like if a plan were applied.

#ifndef SCHEDULER_PAGE_BUDGET_H_
#define SCHEDULER_PAGE_BUDGET_H_

#include <cstdint>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/page_table.h"

namespace folio {

// Counts, page by page, the holders that each would have, and so how many pages
// would be available: exact even where pages are shared, which numbers of pages
// alone can't be. Every operation is O(1) a page and takes no memory once it
// has seen its most.
class PageBudget {
 public:
  // `cache` must outlive the budget.
  explicit PageBudget(const KvCache* cache);

  // Starts from the state of the cache as it is. O(pages that differed).
  void Reset();

  // Pages that could be taken. Negative: pages are held that had been taken
  // as cached ones before, so that the plan can't be applied.
  int64_t available() const { return available_; }

  // `count` pages are taken, or given back by one that took them.
  // REQUIRES: as many are available.
  void Take(int64_t count);
  void GiveBack(int64_t count) { available_ += count; }

  // A table lets go of all its pages, or of one.
  void Release(const PageTable& table);
  void Release(PageId page);

  // One more table holds the page. REQUIRES: it was not free before.
  void Hold(PageId page);

  // Holders that the page would have.
  int32_t NumHolders(PageId page) const {
    return cache_->NumHolders(page) + difference_[ToIndex(page)];
  }

 private:
  void Change(PageId page, int32_t by);

  const KvCache* const cache_;
  int64_t available_ = 0;
  std::vector<int32_t> difference_;  // In holders. [num_pages]
  std::vector<PageId> changed_;      // Where it may not be 0.
};

}  // namespace folio

#endif  // SCHEDULER_PAGE_BUDGET_H_
