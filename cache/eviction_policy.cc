#include "cache/eviction_policy.h"

#include <glog/logging.h>

namespace folio {

EvictionPolicy::EvictionPolicy(int32_t num_pages)
    : links_(num_pages + 1), end_{num_pages} {
  LinkOf(end_) = {.previous = end_, .next = end_};
}

void EvictionPolicy::Add(PageId page) {
  CHECK(!Contains(page)) << "page " << ToIndex(page) << " is cached already";
  const PageId last = LinkOf(end_).previous;
  LinkOf(page) = {.previous = last, .next = end_};
  LinkOf(last).next = page;
  LinkOf(end_).previous = page;
  ++size_;
}

void EvictionPolicy::Remove(PageId page) {
  CHECK(Contains(page)) << "page " << ToIndex(page) << " is not cached";
  const Link link = LinkOf(page);
  LinkOf(link.previous).next = link.next;
  LinkOf(link.next).previous = link.previous;
  LinkOf(page) = Link();
  --size_;
}

PageId EvictionPolicy::Next() const {
  CHECK_GT(size_, 0) << "no page is cached";
  return links_[ToIndex(end_)].next;
}

}  // namespace folio
