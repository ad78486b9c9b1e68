// The bytes of the KV pool.

#ifndef CACHE_KV_STORAGE_H_
#define CACHE_KV_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/status/statusor.h"
#include "cache/kv_layout.h"
#include "cache/page_table.h"
#include "runtime/base/executor.h"

namespace folio {

// One anonymous mapping of num_pages() pages plus a remainder smaller than a
// page; every byte is touched at creation, so that no later write can fail or
// page-fault. The model writes and reads it; which page belongs to whom is
// KvCache's business.
//
// The pool is [layer][kv_head][page], a part each: one attention head reads
// what follows one another from pages that follow one another, which the
// hardware foresees. (With whole pages one after the other it reads 2 KiB here
// and there, at half the rate.)
//
// Thread-safe for accesses to different slots, as plain memory is.
class KvStorage {
 public:
  // `pool_bytes` is what the operator gave (`--kv-pool`); it holds
  // pool_bytes / layout.page_bytes() pages. INVALID_ARGUMENT when that is none,
  // RESOURCE_EXHAUSTED when the machine does not have the memory.
  // `executor` touches it, and is not kept.
  static absl::StatusOr<std::unique_ptr<KvStorage>> Create(
      const KvLayout& layout, int64_t pool_bytes, Executor& executor);
  ~KvStorage();
  KvStorage(const KvStorage&) = delete;
  KvStorage& operator=(const KvStorage&) = delete;

  const KvLayout& layout() const { return layout_; }
  int32_t num_pages() const { return num_pages_; }
  int64_t pool_bytes() const { return pool_bytes_; }
  // pool_bytes() == num_pages() * layout().page_bytes() + remainder_bytes().
  int64_t remainder_bytes() const {
    return pool_bytes_ - num_pages_ * layout_.page_bytes();
  }

  // First byte of a page's first part, aligned to 64.
  std::byte* PageData(PageId page) {
    return data_ + ToIndex(page) * layout_.part_bytes();
  }
  const std::byte* PageData(PageId page) const {
    return data_ + ToIndex(page) * layout_.part_bytes();
  }

  // From a page's part of one KV head to that of the next, and from the last of
  // a layer to the first of the next layer, in bytes.
  int64_t part_stride() const { return num_pages_ * layout_.part_bytes(); }

  // Copies all that page `from` holds to page `to`.
  void CopyPage(PageId from, PageId to) {
    for (int64_t part = 0; part < layout_.num_parts(); ++part) {
      std::memcpy(PageData(to) + part * part_stride(),
                  PageData(from) + part * part_stride(), layout_.part_bytes());
    }
  }

 private:
  KvStorage(const KvLayout& layout, int64_t pool_bytes, std::byte* data);

  const KvLayout layout_;
  const int64_t pool_bytes_;
  const int32_t num_pages_;
  std::byte* const data_;
};

}  // namespace folio

#endif  // CACHE_KV_STORAGE_H_
