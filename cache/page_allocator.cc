#include "cache/page_allocator.h"

#include <glog/logging.h>

namespace folio {

PageAllocator::PageAllocator(int32_t num_pages) {
  CHECK_GE(num_pages, 0);
  reference_counts_.resize(num_pages, 0);
  free_list_.reserve(num_pages);
  for (int32_t i = num_pages - 1; i >= 0; --i) free_list_.push_back(PageId{i});
}

bool PageAllocator::Allocate(std::span<PageId> pages) {
  if (pages.size() > free_list_.size()) return false;
  for (PageId& page : pages) {
    page = free_list_.back();
    free_list_.pop_back();
    reference_counts_[ToIndex(page)] = 1;
  }
  num_in_use_ += static_cast<int32_t>(pages.size());
  num_references_ += static_cast<int64_t>(pages.size());
  return true;
}

void PageAllocator::AddReference(PageId page) {
  CHECK_GT(reference_count(page), 0) << "page " << ToIndex(page) << " is free";
  ++reference_counts_[ToIndex(page)];
  ++num_references_;
}

bool PageAllocator::Release(PageId page) {
  CHECK_GT(reference_count(page), 0) << "page " << ToIndex(page) << " is free";
  --num_references_;
  if (--reference_counts_[ToIndex(page)] > 0) return false;
  --num_in_use_;
  free_list_.push_back(page);
  return true;
}

int32_t PageAllocator::reference_count(PageId page) const {
  CHECK(ToIndex(page) >= 0 && ToIndex(page) < num_pages())
      << "there is no page " << ToIndex(page) << " among " << num_pages();
  return reference_counts_[ToIndex(page)];
}

void PageAllocator::CheckInvariants() const {
  std::vector<bool> listed(num_pages(), false);
  for (const PageId page : free_list_) {
    CHECK_EQ(reference_count(page), 0) << "free page " << ToIndex(page);
    CHECK(!listed[ToIndex(page)]) << "page listed twice: " << ToIndex(page);
    listed[ToIndex(page)] = true;
  }
  int32_t num_referenced = 0;
  int64_t num_references = 0;
  for (const int32_t count : reference_counts_) {
    CHECK_GE(count, 0);
    if (count > 0) ++num_referenced;
    num_references += count;
  }
  CHECK_EQ(num_referenced, num_in_use());
  CHECK_EQ(num_references, num_references_);
  CHECK_EQ(num_free() + num_in_use(), num_pages());
}

}  // namespace folio
