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

KvCache::KvCache(const KvLayout& layout, int32_t num_pages,
                 const KvCacheOptions& options)
    : layout_(layout),
      options_(options),
      allocator_(num_pages),
      index_(layout.page_size(), num_pages, options.prefix_hash),
      eviction_policy_(num_pages) {
  if (options.window.has_value()) CHECK_GE(*options.window, 1);
}

// REQUIRES: as many are available.
void KvCache::Allocate(std::span<PageId> pages) {
  while (num_free() < static_cast<int64_t>(pages.size())) {
    Evict(eviction_policy_.Next());
    ++counters_.pages_evicted;
  }
  CHECK(allocator_.Allocate(pages));
}

void KvCache::Hold(PageId page) {
  if (eviction_policy_.Contains(page)) eviction_policy_.Remove(page);
  allocator_.AddReference(page);
  const int32_t num_holders = NumHolders(page);
  if (num_holders > 1) ++sharing_version_;
  if (num_holders == 2) ++num_shared_;
}

// Whether the page is available now.
bool KvCache::LetGo(PageId page) {
  if (allocator_.Release(page)) return true;
  const int32_t num_holders = NumHolders(page);
  if (num_holders > 0) ++sharing_version_;
  if (num_holders == 1) --num_shared_;
  if (num_holders > 0) return false;
  eviction_policy_.Add(page);
  return true;
}

void KvCache::Evict(PageId page) {
  eviction_policy_.Remove(page);
  index_.RemovePage(page);
  CHECK(allocator_.Release(page));
}

bool KvCache::Grow(PageTable& table, int64_t num_tokens) {
  CHECK_GE(num_tokens, 0);
  const int64_t num_held = table.num_entries();
  const int64_t num_wanted = std::max(num_held, layout_.PagesFor(num_tokens));
  if (num_wanted - num_held > num_available()) return false;
  table.pages_.resize(num_wanted);
  Allocate(std::span(table.pages_).subspan(num_held));
  return true;
}

int64_t KvCache::PagesBeforeWindow(int64_t num_pages) const {
  if (!options_.window.has_value()) return 0;
  const int64_t position = num_pages * layout_.page_size();
  return std::max<int64_t>(0, position - *options_.window + 1) /
         layout_.page_size();
}

int32_t KvCache::ReleaseBeforeWindow(PageTable& table, int64_t position) {
  if (!options_.window.has_value()) return 0;
  const int64_t first_seen =
      std::max<int64_t>(0, position - *options_.window + 1);
  const int64_t num_leaving =
      std::min<int64_t>(first_seen / layout_.page_size(), table.num_entries());
  int32_t num_available = 0;
  for (; table.num_vacated_ < num_leaving; ++table.num_vacated_) {
    PageId& page = table.pages_[table.num_vacated_];
    if (LetGo(page)) ++num_available;
    page = kNoPage;
  }
  return num_available;
}

int32_t KvCache::Release(PageTable& table) {
  int32_t num_available = 0;
  // From the back: leaves of the index are evicted before their parents, and
  // the page freed last, which is handed out first, is the sequence's first, so
  // that a table that grows again gets its pages in order.
  for (const PageId page : HeldPages(table) | std::views::reverse) {
    if (LetGo(page)) ++num_available;
  }
  table.pages_.clear();
  table.num_vacated_ = 0;
  table.num_registered_ = 0;
  MoveTo(table, kNoPrefixNode);
  return num_available;
}

void KvCache::MoveTo(PageTable& table, PrefixNode node) {
  if (node != kNoPrefixNode) index_.Pin(node);
  if (table.last_registered_ != kNoPrefixNode) {
    index_.Unpin(table.last_registered_);
  }
  table.last_registered_ = node;
}

void KvCache::Fork(const PageTable& table, PageTable& copy) {
  CHECK_EQ(copy.num_entries(), 0);
  for (const PageId page : HeldPages(table)) Hold(page);
  copy.pages_.insert(copy.pages_.end(), table.pages_.begin(),
                     table.pages_.end());
  copy.num_vacated_ = table.num_vacated_;
  copy.num_registered_ = table.num_registered_;
  MoveTo(copy, table.last_registered_);
}

bool KvCache::NeedsCopy(const PageTable& table, int64_t position) const {
  const int64_t entry = position / layout_.page_size();
  return entry < table.num_entries() && NumHolders(table.pages_[entry]) > 1;
}

PageCopy KvCache::CopyOnWrite(PageTable& table, int64_t position) {
  CHECK(NeedsCopy(table, position));
  CHECK_GE(num_available(), 1);
  PageId& entry = table.pages_[position / layout_.page_size()];
  CHECK(!index_.HasPage(entry)) << "a full page is written to";
  PageCopy copy{.from = entry};
  Allocate(std::span(&copy.to, 1));
  LetGo(copy.from);
  entry = copy.to;
  ++counters_.pages_copied;
  return copy;
}

void KvCache::FindPrefix(std::span<const TokenId> tokens, std::string_view salt,
                         PrefixMatch& match) const {
  match.num_tokens = 0;
  match.pages.clear();
  match.node = kNoPrefixNode;
  if (!options_.prefix_cache || tokens.empty()) return;
  const int64_t page_size = layout_.page_size();
  const int64_t most = (static_cast<int64_t>(tokens.size()) - 1) / page_size;
  PrefixNode node = index_.FindRoot(salt);
  int64_t num_found = 0;     // Pages that can be taken over.
  int64_t first_of_run = 0;  // From here on, each node has its page.
  for (int64_t i = 0; i < most && node != kNoPrefixNode; ++i) {
    node = index_.FindChild(node, tokens.subspan(i * page_size, page_size));
    if (node == kNoPrefixNode) break;
    const PageId page = index_.page_of(node);
    match.pages.push_back(page);
    if (page == kNoPage) first_of_run = i + 1;
    if (first_of_run > PagesBeforeWindow(i + 1)) continue;
    num_found = i + 1;
    match.node = node;
  }
  match.pages.resize(num_found);
  std::fill_n(match.pages.begin(), PagesBeforeWindow(num_found), kNoPage);
  match.num_tokens = static_cast<int32_t>(num_found * page_size);
}

int32_t KvCache::AttachPrefix(PageTable& table, std::span<const TokenId> tokens,
                              std::string_view salt) {
  CHECK_EQ(table.num_entries(), 0);
  if (!options_.prefix_cache) return 0;
  PrefixMatch match;
  FindPrefix(tokens, salt, match);
  for (const PageId page : match.pages) {
    if (page == kNoPage) {
      ++table.num_vacated_;
    } else {
      Hold(page);
    }
  }
  table.pages_.insert(table.pages_.end(), match.pages.begin(),
                      match.pages.end());
  table.num_registered_ = table.num_entries();
  MoveTo(table, match.node);
  counters_.prefix_query_tokens += static_cast<int64_t>(tokens.size());
  counters_.prefix_hit_tokens += match.num_tokens;
  return match.num_tokens;
}

void KvCache::RegisterPrefix(PageTable& table, std::span<const TokenId> tokens,
                             std::string_view salt) {
  if (!options_.prefix_cache) return;
  const int64_t page_size = layout_.page_size();
  const int64_t num_full = static_cast<int64_t>(tokens.size()) / page_size;
  if (table.num_registered_ >= num_full) return;
  if (table.num_registered_ == 0) MoveTo(table, index_.MakeRoot(salt));
  for (int64_t i = table.num_registered_; i < num_full; ++i) {
    table.num_registered_ = static_cast<int32_t>(i) + 1;
    if (table.last_registered_ == kNoPrefixNode) continue;
    MoveTo(table, RegisterPage(table, static_cast<int32_t>(i),
                               tokens.subspan(i * page_size, page_size)));
  }
}

// Returns the node of the entry's tokens; kNoPrefixNode: it can't be found, and
// neither can what follows it.
PrefixNode KvCache::RegisterPage(PageTable& table, int32_t entry,
                                 std::span<const TokenId> tokens) {
  PageId& page = table.pages_[entry];
  const PrefixNode node = index_.MakeChild(table.last_registered_, tokens);
  if (node == kNoPrefixNode) return node;
  const PageId known = index_.page_of(node);
  if (known == kNoPage) {
    index_.SetPage(node, page);
    allocator_.AddReference(page);
  } else if (known != page) {
    Hold(known);
    LetGo(page);
    page = known;
  }
  return node;
}

int32_t KvCache::FlushPrefixCache() {
  const int32_t num_cached_before = num_cached();
  while (num_cached() > 0) Evict(eviction_policy_.Next());
  for (int32_t i = 0; i < num_pages(); ++i) {
    if (!index_.HasPage(PageId{i})) continue;
    index_.RemovePage(PageId{i});
    allocator_.Release(PageId{i});
  }
  return num_cached_before;
}

int32_t KvCache::NumShared(const PageTable& table) const {
  if (num_shared_ == 0) return 0;
  if (table.shared_version_ != sharing_version_) {
    table.shared_version_ = sharing_version_;
    table.num_shared_ = static_cast<int32_t>(std::ranges::count_if(
        HeldPages(table),
        [this](PageId page) { return NumHolders(page) > 1; }));
  }
  return table.num_shared_;
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
  if (!options_.window.has_value()) return all;
  // The worst place for a window: its last position is the first of a page.
  return std::min(all, layout_.PagesFor(*options_.window - 1) + 1);
}

int64_t KvCache::CapacityTokens() const {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  if (options_.window.has_value() && PagesInWindow(kNoLimit) <= num_pages()) {
    return kNoLimit;
  }
  return int64_t{num_pages()} * layout_.page_size();
}

void KvCache::CheckInvariants() const {
  allocator_.CheckInvariants();
  index_.CheckInvariants();
  int32_t num_cached_pages = 0;
  int32_t num_shared_pages = 0;
  for (int32_t i = 0; i < num_pages(); ++i) {
    const PageId page{i};
    const bool is_cached = index_.HasPage(page) && NumHolders(page) == 0;
    CHECK_EQ(is_cached, eviction_policy_.Contains(page)) << "page " << i;
    if (is_cached) ++num_cached_pages;
    CHECK_GE(NumHolders(page), 0) << "page " << i;
    if (NumHolders(page) > 1) ++num_shared_pages;
  }
  CHECK_EQ(num_shared_pages, num_shared_);
  CHECK_EQ(num_cached_pages, num_cached());
  CHECK_EQ(num_free() + num_in_use() + num_cached(), num_pages());
}

}  // namespace folio
