#include "cache/kv_cache.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <ranges>

namespace folio {
namespace {

std::span<const PageId> HeldPages(const PageTable& table) {
  return table.pages().subspan(table.num_vacated());
}

}  // namespace

bool KvCache::Grow(PageTable& table, int64_t num_tokens) {
  CHECK_GE(num_tokens, 0);
  const int64_t num_held = table.num_entries();
  const int64_t num_wanted = std::max(num_held, layout_.PagesFor(num_tokens));
  if (num_wanted - num_held > num_free()) return false;
  table.pages_.resize(num_wanted);
  CHECK(allocator_.Allocate(std::span(table.pages_).subspan(num_held)));
  return true;
}

int32_t KvCache::ReleaseBeforeWindow(PageTable& table, int64_t position) {
  if (!window_.has_value()) return 0;
  const int64_t first_seen = std::max<int64_t>(0, position - *window_ + 1);
  const int64_t num_leaving =
      std::min<int64_t>(first_seen / layout_.page_size(), table.num_entries());
  int32_t num_freed = 0;
  for (; table.num_vacated_ < num_leaving; ++table.num_vacated_) {
    PageId& page = table.pages_[table.num_vacated_];
    if (allocator_.Release(page)) ++num_freed;
    page = kNoPage;
  }
  return num_freed;
}

int32_t KvCache::Release(PageTable& table) {
  int32_t num_freed = 0;
  // From the back, so that the page freed last, which is handed out first, is
  // the sequence's first: a table that grows again gets its pages in order.
  for (const PageId page : HeldPages(table) | std::views::reverse) {
    if (allocator_.Release(page)) ++num_freed;
  }
  table.pages_.clear();
  table.num_vacated_ = 0;
  return num_freed;
}

int32_t KvCache::NumReleasable(const PageTable& table) const {
  if (NumDuplicatesSaved() == 0) return table.num_pages();
  return static_cast<int32_t>(std::ranges::count_if(
      HeldPages(table),
      [this](PageId page) { return allocator_.reference_count(page) == 1; }));
}

Slot KvCache::SlotOf(const PageTable& table, int64_t position) const {
  CHECK(position >= 0 &&
        position < int64_t{table.num_entries()} * layout_.page_size())
      << "position " << position << " in a table of " << table.num_entries()
      << " pages of " << layout_.page_size();
  const PageId page = table.pages_[position / layout_.page_size()];
  CHECK(page != kNoPage) << "position " << position << " has left the window";
  return {page, static_cast<int32_t>(position % layout_.page_size())};
}

int64_t KvCache::PagesInWindow(int64_t num_tokens) const {
  const int64_t all = layout_.PagesFor(num_tokens);
  if (!window_.has_value()) return all;
  // The worst place for a window: its last position is the first of a page.
  return std::min(all, layout_.PagesFor(*window_ - 1) + 1);
}

int64_t KvCache::CapacityTokens() const {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  if (window_.has_value() && PagesInWindow(kNoLimit) <= num_pages()) {
    return kNoLimit;
  }
  return int64_t{num_pages()} * layout_.page_size();
}

}  // namespace folio
