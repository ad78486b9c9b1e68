// The accounting facade that the scheduler uses: page tables grow and shrink
// here, and only here.

#ifndef CACHE_KV_CACHE_H_
#define CACHE_KV_CACHE_H_

#include <cstdint>
#include <optional>

#include "cache/kv_layout.h"
#include "cache/page_allocator.h"
#include "cache/page_table.h"

namespace folio {

// Invariant: the reference count of each page equals the number of page-table
// entries that name it.
//
// With a window, a token sees the last `window` positions only, its own among
// them, and pages that no token to come can see are given back while their
// sequence runs: however long it gets, it holds no more than PagesInWindow()
// between steps, and one chunk's more in one.
//
// Owned by the engine thread; not thread-safe. Running out of pages is not an
// error but a `false`, which the scheduler answers with preemption or waiting.
class KvCache {
 public:
  // REQUIRES: num_pages >= 0; a window is at least 1.
  KvCache(const KvLayout& layout, int32_t num_pages,
          std::optional<int32_t> window = std::nullopt)
      : layout_(layout), window_(window), allocator_(num_pages) {}

  // Takes memory, and no page, for the entries of `num_tokens` tokens, so that
  // growing to as many takes none. REQUIRES: num_tokens >= 0.
  void Reserve(PageTable& table, int64_t num_tokens) const {
    table.pages_.reserve(layout_.PagesFor(num_tokens));
  }

  // Makes room for tokens at positions [0, num_tokens); never shrinks. On false
  // (too few free pages) nothing has changed. O(1) a page added.
  // REQUIRES: num_tokens >= 0.
  [[nodiscard]] bool Grow(PageTable& table, int64_t num_tokens);

  // Gives back the pages that the token at `position` and those behind it do
  // not see. Returns how many became free. O(1) when there is none, else O(1) a
  // page.
  int32_t ReleaseBeforeWindow(PageTable& table, int64_t position);

  // Tokens whose K/V is in pages of `table`, of the first num_computed ones.
  int64_t TokensHeld(const PageTable& table, int64_t num_computed) const {
    return num_computed - int64_t{table.num_vacated()} * layout_.page_size();
  }

  // Gives back every page of `table` and leaves it empty. Returns how many
  // became free. O(1) a page.
  int32_t Release(PageTable& table);

  // How many pages Release would free: those that nobody else holds. O(1) while
  // no page is shared, else O(1) a page.
  int32_t NumReleasable(const PageTable& table) const;

  // Entries of `table` whose page another table holds too. Costs as above.
  int32_t NumShared(const PageTable& table) const {
    return table.num_pages() - NumReleasable(table);
  }

  // Pages that sharing saves: what page tables hold more than is in use. O(1).
  int64_t NumDuplicatesSaved() const {
    return allocator_.num_references() - allocator_.num_in_use();
  }

  // Where the token at `position` has its K/V.
  // REQUIRES: 0 <= position < table.num_entries() * layout().page_size(), and
  // its page has not left the window.
  Slot SlotOf(const PageTable& table, int64_t position) const;

  const KvLayout& layout() const { return layout_; }
  std::optional<int32_t> window() const { return window_; }
  const PageAllocator& allocator() const { return allocator_; }
  int32_t num_pages() const { return allocator_.num_pages(); }
  int32_t num_free() const { return allocator_.num_free(); }

  // The most pages that what one token sees, its own slot included, lies in; of
  // a sequence of `num_tokens`, if that is fewer.
  int64_t PagesInWindow(int64_t num_tokens) const;

  // The most tokens that one sequence can ever have: no limit when the pool
  // holds a window.
  int64_t CapacityTokens() const;

 private:
  KvLayout layout_;
  std::optional<int32_t> window_;
  PageAllocator allocator_;
};

}  // namespace folio

#endif  // CACHE_KV_CACHE_H_
