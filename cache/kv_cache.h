// The accounting facade that the scheduler uses: page tables grow, shrink and
// share here, and only here.

#ifndef CACHE_KV_CACHE_H_
#define CACHE_KV_CACHE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cache/eviction_policy.h"
#include "cache/kv_layout.h"
#include "cache/page_allocator.h"
#include "cache/page_table.h"
#include "cache/prefix_index.h"
#include "runtime/base/types.h"

namespace folio {

// What a prompt can take over from pages that are there already.
struct PrefixMatch {
  int32_t num_tokens = 0;  // A multiple of the page size.
  // [num_tokens / page_size], kNoPage where it lies before the window.
  std::vector<PageId> pages;
  PrefixNode node = kNoPrefixNode;  // Of the last of them.
};

// The K/V of page `from` has to be copied to page `to`.
struct PageCopy {
  PageId from;
  PageId to;
};

// How much has happened since the beginning.
struct CacheCounters {
  int64_t prefix_query_tokens = 0;  // Asked for when a table was attached.
  int64_t prefix_hit_tokens = 0;    // Of them, found.
  int64_t pages_evicted = 0;
  int64_t pages_copied = 0;
};

struct KvCacheOptions {
  // The positions that a token sees, its own among them; none: all before it.
  std::optional<int32_t> window;
  // Keep full pages findable by their tokens, until their place is needed.
  bool prefix_cache = true;
  // A test hook: how prefixes are hashed.
  PrefixHash prefix_hash = HashTokens;
};

// A page is in one of three states:
//
//   free     nobody holds it
//   in use   page tables hold it, and the prefix index perhaps, too
//   cached   the prefix index alone holds it; it can be had at any time, by
//            giving up what is in it ("evicting")
//
// Invariant: the reference count of each page equals the number of page-table
// entries that name it, and one more while the index can find it.
//
// Pages of several tables are shared when they hold the same tokens after the
// same tokens: those of a fork, those attached, and those registered. K/V is a
// function of these tokens to the last bit, so which copy survives does not
// matter. A page that is shared or findable is not written to.
//
// With a window, pages that no token to come can see are given back while their
// sequence runs: however long it gets, it holds no more than PagesInWindow()
// between steps, and one chunk's more in one.
//
// Owned by the engine thread; not thread-safe. Running out of pages is not an
// error but a `false`, which the scheduler answers with preemption or waiting.
class KvCache {
 public:
  // REQUIRES: num_pages >= 0; a window is at least 1.
  KvCache(const KvLayout& layout, int32_t num_pages,
          const KvCacheOptions& options = {});

  // Takes memory, and no page, for the entries of `num_tokens` tokens, so that
  // growing to as many takes none. REQUIRES: num_tokens >= 0.
  void Reserve(PageTable& table, int64_t num_tokens) const {
    table.pages_.reserve(layout_.PagesFor(num_tokens));
  }

  // --- A table's pages. All are O(1) a page. ---

  // Makes room for tokens at positions [0, num_tokens); never shrinks. Evicts
  // where too few pages are free. On false (too few are available) nothing has
  // changed. REQUIRES: num_tokens >= 0.
  [[nodiscard]] bool Grow(PageTable& table, int64_t num_tokens);

  // Gives back the pages that the token at `position` and those behind it do
  // not see. Returns how many became available.
  int32_t ReleaseBeforeWindow(PageTable& table, int64_t position);

  // Gives back every page of `table` and leaves it empty. Returns how many
  // became available.
  int32_t Release(PageTable& table);

  // Makes `copy`, which must be empty, a second table of the pages of `table`.
  void Fork(const PageTable& table, PageTable& copy);

  // Whether the page of `position`, if there is one yet, is shared, so that it
  // has to be copied before the table's owner writes to it.
  bool NeedsCopy(const PageTable& table, int64_t position) const;

  // Gives the table a page of its own in its place; the caller has the bytes
  // copied before the next forward pass, and before anything else is written to
  // either page. REQUIRES: NeedsCopy(), and a page is available.
  PageCopy CopyOnWrite(PageTable& table, int64_t position);

  // --- Sharing of prefixes. Without a prefix cache nothing is ever found. ---

  // What a sequence that has these tokens can take over, and from whom: `salt`
  // is what else decides what K/V is and who may share it. At most
  // tokens.size() - 1 tokens, so that one is left to compute. O(tokens of the
  // pages found and of one more).
  void FindPrefix(std::span<const TokenId> tokens, std::string_view salt,
                  PrefixMatch& match) const;

  // Takes over what FindPrefix has found; returns how many tokens that are.
  // REQUIRES: `table` is empty.
  int32_t AttachPrefix(PageTable& table, std::span<const TokenId> tokens,
                       std::string_view salt);

  // Makes the full pages of `tokens`, whose K/V is in `table`, findable. Where
  // a page with the same prefix is findable already, the table takes that one
  // and gives back its own. O(tokens of the pages that are new).
  void RegisterPrefix(PageTable& table, std::span<const TokenId> tokens,
                      std::string_view salt);

  // Nothing that is registered up to now is found any more; cached pages become
  // free. Returns how many. O(pages).
  int32_t FlushPrefixCache();

  // --- Numbers. ---

  // Tokens whose K/V is in pages of `table`, of the first num_computed ones.
  int64_t TokensHeld(const PageTable& table, int64_t num_computed) const {
    return num_computed - int64_t{table.num_vacated()} * layout_.page_size();
  }

  // Page-table entries that name the page. 0: it is free or cached.
  int32_t NumHolders(PageId page) const {
    return allocator_.reference_count(page) - (index_.HasPage(page) ? 1 : 0);
  }

  // Entries of `table` whose page another table holds too. O(1) unless the
  // holders of a shared page have changed since it was last asked for this
  // table; else O(pages).
  int32_t NumShared(const PageTable& table) const;

  // Pages that two tables or more hold.
  int32_t num_shared() const { return num_shared_; }

  // Pages that sharing saves: what page tables hold more than is in use.
  int64_t NumDuplicatesSaved() const {
    return allocator_.num_references() - index_.num_pages() - num_in_use();
  }

  // Where the token at `position` has its K/V.
  // REQUIRES: 0 <= position < table.num_entries() * layout().page_size(), and
  // its page has not left the window.
  Slot SlotOf(const PageTable& table, int64_t position) const;

  const KvLayout& layout() const { return layout_; }
  std::optional<int32_t> window() const { return options_.window; }
  bool has_prefix_cache() const { return options_.prefix_cache; }
  const CacheCounters& counters() const { return counters_; }

  // num_pages() == num_free() + num_in_use() + num_cached().
  int32_t num_pages() const { return allocator_.num_pages(); }
  int32_t num_free() const { return allocator_.num_free(); }
  int32_t num_cached() const { return eviction_policy_.size(); }
  int32_t num_in_use() const { return allocator_.num_in_use() - num_cached(); }
  // Those that tables can get.
  int32_t num_available() const { return num_free() + num_cached(); }

  // The most pages that what one token sees, its own slot included, lies in; of
  // a sequence of `num_tokens`, if that is fewer.
  int64_t PagesInWindow(int64_t num_tokens) const;

  // The most tokens that one sequence can ever have: no limit when the pool
  // holds a window.
  int64_t CapacityTokens() const;

  // CHECKs the invariants above, in O(pages). For tests.
  void CheckInvariants() const;

 private:
  // The number of pages at the front of `num_pages` that the token behind them
  // does not see.
  int64_t PagesBeforeWindow(int64_t num_pages) const;
  void Allocate(std::span<PageId> pages);
  void Hold(PageId page);
  bool LetGo(PageId page);
  void Evict(PageId page);
  void MoveTo(PageTable& table, PrefixNode node);
  PrefixNode RegisterPage(PageTable& table, int32_t entry,
                          std::span<const TokenId> tokens);

  const KvLayout layout_;
  const KvCacheOptions options_;
  PageAllocator allocator_;
  PrefixIndex index_;
  EvictionPolicy eviction_policy_;  // Of the cached pages.
  CacheCounters counters_;
  int32_t num_shared_ = 0;
  // Changes whenever a page that has several holders gets or loses one.
  int64_t sharing_version_ = 0;
};

}  // namespace folio

#endif  // CACHE_KV_CACHE_H_
