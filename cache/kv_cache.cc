#include "cache/kv_cache.h"

#include <glog/logging.h>

#include <algorithm>
#include <ranges>

namespace folio {

bool KvCache::Grow(PageTable& table, int64_t num_tokens) {
  CHECK_GE(num_tokens, 0);
  const int64_t num_held = table.num_pages();
  const int64_t num_wanted = std::max(num_held, layout_.PagesFor(num_tokens));
  if (num_wanted - num_held > num_free()) return false;
  table.pages_.resize(num_wanted);
  CHECK(allocator_.Allocate(std::span(table.pages_).subspan(num_held)));
  return true;
}

int32_t KvCache::Release(PageTable& table) {
  int32_t num_freed = 0;
  // From the back, so that the page freed last, which is handed out first, is
  // the sequence's first: a table that grows again gets its pages in order.
  for (const PageId page : table.pages_ | std::views::reverse) {
    if (allocator_.Release(page)) ++num_freed;
  }
  table.pages_.clear();
  return num_freed;
}

int32_t KvCache::NumReleasable(const PageTable& table) const {
  if (NumDuplicatesSaved() == 0) return table.num_pages();
  return static_cast<int32_t>(std::ranges::count_if(
      table.pages_,
      [this](PageId page) { return allocator_.reference_count(page) == 1; }));
}

Slot KvCache::SlotOf(const PageTable& table, int64_t position) const {
  CHECK(position >= 0 &&
        position < int64_t{table.num_pages()} * layout_.page_size())
      << "position " << position << " in a table of " << table.num_pages()
      << " pages of " << layout_.page_size();
  return {table.pages_[position / layout_.page_size()],
          static_cast<int32_t>(position % layout_.page_size())};
}

}  // namespace folio
