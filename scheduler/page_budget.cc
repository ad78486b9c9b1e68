#include "scheduler/page_budget.h"

#include <glog/logging.h>

namespace folio {

PageBudget::PageBudget(const KvCache* cache)
    : cache_(cache), difference_(cache->num_pages(), 0) {
  Reset();
}

void PageBudget::Reset() {
  for (const PageId page : changed_) difference_[ToIndex(page)] = 0;
  changed_.clear();
  available_ = cache_->num_available();
}

void PageBudget::Take(int64_t count) {
  CHECK_LE(count, available_);
  available_ -= count;
}

void PageBudget::Release(const PageTable& table) {
  for (int32_t i = table.num_vacated(); i < table.num_entries(); ++i) {
    Release(table.pages()[i]);
  }
}

void PageBudget::Release(PageId page) {
  Change(page, -1);
  const int32_t num_holders = NumHolders(page);
  CHECK_GE(num_holders, 0);
  if (num_holders == 0) ++available_;
}

void PageBudget::Hold(PageId page) {
  Change(page, +1);
  if (NumHolders(page) == 1) --available_;
}

void PageBudget::Change(PageId page, int32_t by) {
  int32_t& difference = difference_[ToIndex(page)];
  if (difference == 0) changed_.push_back(page);
  difference += by;
}

}  // namespace folio
