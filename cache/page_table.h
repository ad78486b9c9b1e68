// Names of physical pages, and a sequence's own list of them.

#ifndef CACHE_PAGE_TABLE_H_
#define CACHE_PAGE_TABLE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace folio {

// A physical page: an index into KvStorage, in [0, num_pages).
enum class PageId : int32_t {};

constexpr int32_t ToIndex(PageId page) { return static_cast<int32_t>(page); }

// One token's place in KvStorage. 0 <= offset < page_size.
struct Slot {
  PageId page;
  int32_t offset;
};

// A sequence's pages in logical order: position p lives in entry p / page_size,
// at offset p % page_size. Each entry stands for one reference on its page.
//
// Only KvCache changes a table; it is the owner of those references. A table
// must be released (KvCache::Release) before it is destroyed or overwritten.
class PageTable {
 public:
  PageTable() = default;
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;

  std::span<const PageId> pages() const { return pages_; }
  int32_t num_pages() const { return static_cast<int32_t>(pages_.size()); }

 private:
  friend class KvCache;
  std::vector<PageId> pages_;
};

}  // namespace folio

#endif  // CACHE_PAGE_TABLE_H_
