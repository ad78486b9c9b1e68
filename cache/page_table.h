// Names of physical pages, and a sequence's own list of them.

#ifndef CACHE_PAGE_TABLE_H_
#define CACHE_PAGE_TABLE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace folio {

// A physical page: an index into KvStorage, in [0, num_pages).
enum class PageId : int32_t {};

// In a table: the page that was here left the window of attention, and has been
// given back.
inline constexpr PageId kNoPage{-1};

constexpr int32_t ToIndex(PageId page) { return static_cast<int32_t>(page); }

// A run of tokens that the prefix index knows (PrefixIndex).
enum class PrefixNode : int32_t {};

inline constexpr PrefixNode kNoPrefixNode{-1};

// One token's place in KvStorage. 0 <= offset < page_size.
struct Slot {
  PageId page;
  int32_t offset;
};

// A sequence's pages in logical order: position p lives in entry p / page_size,
// at offset p % page_size. Each entry stands for one reference on its page, but
// for those at the front whose pages have left the window (kNoPage).
//
// Only KvCache changes a table; it is the owner of those references. A table
// must be released (KvCache::Release) before it is destroyed or overwritten.
class PageTable {
 public:
  PageTable() = default;
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;

  std::span<const PageId> pages() const { return pages_; }
  // Entries, with a page or without.
  int32_t num_entries() const { return static_cast<int32_t>(pages_.size()); }
  int32_t num_pages() const { return num_entries() - num_vacated_; }
  // Entries at the front whose pages have left the window.
  int32_t num_vacated() const { return num_vacated_; }

 private:
  friend class KvCache;
  std::vector<PageId> pages_;
  int32_t num_vacated_ = 0;
  // Full pages at the front that have been made findable, and the node of the
  // last of them, or the salt's root; the table keeps a pin on it. No node
  // before the first, nor once the index could not take one.
  int32_t num_registered_ = 0;
  PrefixNode last_registered_ = kNoPrefixNode;
  // How many of its pages others held when KvCache last counted, and when that
  // was.
  mutable int32_t num_shared_ = 0;
  mutable int64_t shared_version_ = -1;
};

}  // namespace folio

#endif  // CACHE_PAGE_TABLE_H_
