// What attention reads.

#ifndef RUNTIME_KERNELS_ATTENTION_INPUT_H_
#define RUNTIME_KERNELS_ATTENTION_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/element_type.h"

namespace folio {

struct AttentionShape {
  int32_t num_heads = 0;     // Query heads.
  int32_t num_kv_heads = 0;  // Divides num_heads; neighbouring heads share one.
  int32_t head_dim = 0;
};

// Where one layer's K and V lie inside each page: for every KV head two arrays
// [page_size][head_dim] of `type`, and with int8 two arrays [page_size] of the
// floats that they are multiplied by; those of the next head follow. Offsets in
// bytes; scales need not be aligned.
struct PagedKv {
  ElementType type = ElementType::kF32;  // Not kInt4.
  int32_t page_size = 0;                 // In token slots; any positive number.
  int64_t key_offset = 0;                // Of KV head 0.
  int64_t value_offset = 0;              // Of KV head 0.
  int64_t head_stride = 0;               // From one KV head to the next.
  int64_t key_scale_offset = 0;          // Of KV head 0; of int8 only.
  int64_t value_scale_offset = 0;        // Of KV head 0; of int8 only.

  int64_t scale_head_stride() const {
    return int64_t{page_size} * int64_t{sizeof(float)};
  }
};

// One token's place.
struct KvSlot {
  std::byte* page = nullptr;  // The first byte.
  int32_t slot = 0;           // Below the page size.
};

// Rows [first_row, first_row + num_rows) of the batch are one sequence's tokens
// at positions [first_position, first_position + num_rows).
struct AttentionSequence {
  int32_t first_row = 0;
  int32_t num_rows = 0;
  int32_t first_position = 0;
  // First bytes of its pages in logical order. K/V of all positions that its
  // rows see must be there; pages without any of those are not looked at.
  std::span<const std::byte* const> pages;
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_ATTENTION_INPUT_H_
