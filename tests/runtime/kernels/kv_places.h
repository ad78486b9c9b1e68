// Where elements of K/V lie in a page, written plainly.

#ifndef TESTS_RUNTIME_KERNELS_KV_PLACES_H_
#define TESTS_RUNTIME_KERNELS_KV_PLACES_H_

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/attention_input.h"

namespace folio {

// Elements of a key with those that pad it to whole dwords.
inline int32_t PaddedKeySize(const PagedKv& kv, int32_t head_dim) {
  const int32_t in_dword = 4 / BytesOf(kv.type);
  return (head_dim + in_dword - 1) / in_dword * in_dword;
}

// Bytes of an array of keys, and enough for one of values.
inline int64_t KvArrayBytes(const PagedKv& kv, int32_t head_dim) {
  return int64_t{kv.page_size} * PaddedKeySize(kv, head_dim) * BytesOf(kv.type);
}

// keys[column / n][slot][column % n], where a dword has n elements.
inline std::byte* KeyPlace(const PagedKv& kv, std::byte* page, int32_t kv_head,
                           int32_t slot, int32_t column) {
  const int32_t n = 4 / BytesOf(kv.type);
  const int64_t element =
      (int64_t{column / n} * kv.page_size + slot) * n + column % n;
  return page + kv.key_offset + kv_head * kv.head_stride +
         element * BytesOf(kv.type);
}

// values[slot / n][column][slot % n], where n is 2 for bf16, else 1.
inline std::byte* ValuePlace(const PagedKv& kv, std::byte* page,
                             int32_t kv_head, int32_t head_dim, int32_t slot,
                             int32_t column) {
  const int32_t n = kv.type == ElementType::kBf16 ? 2 : 1;
  const int64_t element =
      (int64_t{slot / n} * head_dim + column) * n + slot % n;
  return page + kv.value_offset + kv_head * kv.head_stride +
         element * BytesOf(kv.type);
}

inline std::byte* ScalePlace(const PagedKv& kv, std::byte* page,
                             int32_t kv_head, bool is_key, int32_t slot) {
  return page + (is_key ? kv.key_scale_offset : kv.value_scale_offset) +
         kv_head * kv.head_stride + slot * int64_t{sizeof(float)};
}

}  // namespace folio

#endif  // TESTS_RUNTIME_KERNELS_KV_PLACES_H_
