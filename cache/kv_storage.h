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

  // First byte of a page, aligned to 64.
  std::byte* PageData(PageId page) {
    return data_ + ToIndex(page) * layout_.page_bytes();
  }
  const std::byte* PageData(PageId page) const {
    return data_ + ToIndex(page) * layout_.page_bytes();
  }

  // Copies all that page `from` holds to page `to`: one memcpy.
  void CopyPage(PageId from, PageId to) {
    std::memcpy(PageData(to), PageData(from), layout_.page_bytes());
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
