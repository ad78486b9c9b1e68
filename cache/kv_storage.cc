#include "cache/kv_storage.h"

#include <glog/logging.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/available_memory.h"
#include "runtime/base/byte_size.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

absl::Status CheckPoolBytes(const KvLayout& layout, int64_t pool_bytes) {
  if (pool_bytes < layout.page_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a KV pool of ", pool_bytes, " bytes holds no page of ",
                     layout.page_bytes(), " bytes (", layout.page_size(),
                     " tokens); give the pool more memory"));
  }
  const int64_t num_pages = pool_bytes / layout.page_bytes();
  if (num_pages > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a KV pool of ", FormatByteSize(pool_bytes), " has ", num_pages,
        " pages of ", layout.page_bytes(), " bytes, more than the ",
        std::numeric_limits<int32_t>::max(),
        " that can be numbered; use larger pages or a smaller pool"));
  }
  // Touching memory that is not there gets the process killed without a word.
  const int64_t available = AvailableMemoryBytes();
  if (pool_bytes > available) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a KV pool of ", FormatByteSize(pool_bytes), " does not fit into the ",
        FormatByteSize(available),
        " of memory that are available; give it less, or free memory"));
  }
  return absl::OkStatus();
}

// Makes the kernel back every page of a mapping with memory. It clears each of
// them, which takes a tenth of a second for 100 MiB.
void Touch(std::byte* data, int64_t size, Executor& executor) {
  constexpr int64_t kTaskBytes = 16 << 20;  // Whole huge pages.
  const int64_t os_page_bytes = sysconf(_SC_PAGESIZE);
  volatile std::byte* const bytes = data;
  const int num_tasks = static_cast<int>((size + kTaskBytes - 1) / kTaskBytes);
  executor.ParallelFor(num_tasks, [&](int task, int /*worker*/) {
    const int64_t end = std::min(size, (task + int64_t{1}) * kTaskBytes);
    for (int64_t i = task * kTaskBytes; i < end; i += os_page_bytes) {
      bytes[i] = std::byte{0};
    }
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<KvStorage>> KvStorage::Create(
    const KvLayout& layout, int64_t pool_bytes, Executor& executor) {
  FOLIO_RETURN_IF_ERROR(CheckPoolBytes(layout, pool_bytes));
  void* data = mmap(nullptr, pool_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    return absl::ResourceExhaustedError(absl::StrCat(
        "can't map a KV pool of ", FormatByteSize(pool_bytes), ": ",
        std::strerror(error), "; give it less memory, or raise the limit"));
  }
  // Attention walks through all of it: huge pages spare it most TLB misses, and
  // Touch most page faults. A kernel without them says no, which is fine.
  madvise(data, pool_bytes, MADV_HUGEPAGE);
  Touch(static_cast<std::byte*>(data), pool_bytes, executor);
  return std::unique_ptr<KvStorage>(
      new KvStorage(layout, pool_bytes, static_cast<std::byte*>(data)));
}

KvStorage::KvStorage(const KvLayout& layout, int64_t pool_bytes,
                     std::byte* data)
    : layout_(layout),
      pool_bytes_(pool_bytes),
      num_pages_(static_cast<int32_t>(pool_bytes / layout.page_bytes())),
      data_(data) {}

KvStorage::~KvStorage() { PCHECK(munmap(data_, pool_bytes_) == 0); }

}  // namespace folio
