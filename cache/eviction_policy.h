// Which cached page to give up next.

#ifndef CACHE_EVICTION_POLICY_H_
#define CACHE_EVICTION_POLICY_H_

#include <cstdint>
#include <vector>

#include "cache/page_table.h"

namespace folio {

// Cached pages, those that the prefix index alone holds, in the order in which
// they were last used: a page is used until its last sequence lets go of it, so
// time is the order of those moments, and no clock is read.
//
// A sequence lets go of its last page first. So of pages that were used
// together the leaf of the prefix stands before its parent, and giving up a
// page leaves none behind that can't be found, except where a window has let go
// of the beginning of a sequence before.
//
// A doubly linked list through arrays: every operation is O(1) and takes no
// memory. Not thread-safe.
class EvictionPolicy {
 public:
  explicit EvictionPolicy(int32_t num_pages);

  // `page` is cached from now on. REQUIRES: it was not.
  void Add(PageId page);
  // It no longer is: used again, or given up. REQUIRES: it was.
  void Remove(PageId page);
  bool Contains(PageId page) const {
    return links_[ToIndex(page)].next != kNoPage;
  }

  // The least recently used. REQUIRES: size() > 0.
  PageId Next() const;

  int32_t size() const { return size_; }

 private:
  struct Link {
    PageId previous = kNoPage;
    PageId next = kNoPage;
  };
  Link& LinkOf(PageId page) { return links_[ToIndex(page)]; }

  // Closed to a ring by one entry more than pages, which stands between the
  // most and the least recently used.
  std::vector<Link> links_;  // [num_pages + 1]
  const PageId end_;
  int32_t size_ = 0;
};

}  // namespace folio

#endif  // CACHE_EVICTION_POLICY_H_
