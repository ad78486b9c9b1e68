#include "tests/runtime/engine/watched_allocations.h"

#include <dlfcn.h>
#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <new>

#include "absl/strings/str_cat.h"

// glibc's, under the names that an interposed malloc can reach.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* memory);
}

namespace folio {
namespace {

using Kind = AllocationCall::Kind;

constexpr size_t kMaxCalls = 1 << 20;
std::array<AllocationCall, kMaxCalls> calls;
std::atomic<size_t> num_calls = 0;
std::atomic<bool> watching = false;
std::atomic<bool> mark = false;

void See(const void* caller, size_t bytes, Kind kind) {
  if (!watching.load(std::memory_order_relaxed)) return;
  const size_t place = num_calls.fetch_add(1, std::memory_order_relaxed);
  if (place >= kMaxCalls) return;  // SeenCalls says so.
  calls[place] = {.caller = caller,
                  .bytes = bytes,
                  .kind = kind,
                  .marked = mark.load(std::memory_order_relaxed)};
}

void* Seen(const void* caller, size_t bytes, void* memory) {
  See(caller, bytes, Kind::kAllocate);
  return memory;
}

void* NewFrom(const void* caller, size_t size, size_t alignment = 0) {
  See(caller, size, Kind::kAllocate);
  size = std::max<size_t>(size, 1);
  void* const memory =
      alignment == 0 ? __libc_malloc(size) : __libc_memalign(alignment, size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void FreeFrom(const void* caller, void* memory) {
  if (memory != nullptr) See(caller, 0, Kind::kFree);
  __libc_free(memory);
}

}  // namespace

void StartWatching() {
  num_calls = 0;
  mark = false;
  watching = true;
}

void StopWatching() { watching = false; }

void SetMark(bool marked) { mark = marked; }

std::vector<AllocationCall> SeenCalls() {
  CHECK(!watching);
  CHECK_LE(num_calls, kMaxCalls) << "calls were lost";
  return {calls.begin(), calls.begin() + num_calls};
}

std::string LibraryOf(const void* code) {
  Dl_info info;
  if (dladdr(code, &info) == 0) return "nowhere";
  return std::filesystem::path(info.dli_fname).filename().string();
}

std::string PlaceOf(const void* code) {
  Dl_info info;
  if (dladdr(code, &info) == 0) return "nowhere";
  const bool has_symbol = info.dli_sname != nullptr;
  const void* const base = has_symbol ? info.dli_saddr : info.dli_fbase;
  const auto offset =
      reinterpret_cast<uintptr_t>(code) - reinterpret_cast<uintptr_t>(base);
  return absl::StrCat(LibraryOf(code), " ", has_symbol ? info.dli_sname : "",
                      "+0x", absl::Hex(offset));
}

}  // namespace folio

using folio::FreeFrom;
using folio::NewFrom;
using folio::Seen;

extern "C" {
void* malloc(size_t size) {
  return Seen(__builtin_return_address(0), size, __libc_malloc(size));
}
void* calloc(size_t count, size_t size) {
  return Seen(__builtin_return_address(0), count * size,
              __libc_calloc(count, size));
}
void* realloc(void* memory, size_t size) {
  return Seen(__builtin_return_address(0), size, __libc_realloc(memory, size));
}
void* memalign(size_t alignment, size_t size) {
  return Seen(__builtin_return_address(0), size,
              __libc_memalign(alignment, size));
}
void* aligned_alloc(size_t alignment, size_t size) {
  return Seen(__builtin_return_address(0), size,
              __libc_memalign(alignment, size));
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory =
      Seen(__builtin_return_address(0), size, __libc_memalign(alignment, size));
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) { FreeFrom(__builtin_return_address(0), memory); }
}

void* operator new(size_t size) {
  return NewFrom(__builtin_return_address(0), size);
}
void* operator new[](size_t size) {
  return NewFrom(__builtin_return_address(0), size);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return NewFrom(__builtin_return_address(0), size, size_t(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return NewFrom(__builtin_return_address(0), size, size_t(alignment));
}
void operator delete(void* memory) noexcept {
  FreeFrom(__builtin_return_address(0), memory);
}
void operator delete[](void* memory) noexcept {
  FreeFrom(__builtin_return_address(0), memory);
}
void operator delete(void* memory, size_t) noexcept {
  FreeFrom(__builtin_return_address(0), memory);
}
void operator delete[](void* memory, size_t) noexcept {
  FreeFrom(__builtin_return_address(0), memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  FreeFrom(__builtin_return_address(0), memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  FreeFrom(__builtin_return_address(0), memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  FreeFrom(__builtin_return_address(0), memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  FreeFrom(__builtin_return_address(0), memory);
}
