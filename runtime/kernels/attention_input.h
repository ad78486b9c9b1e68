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

// Where one layer's K and V lie, from the first byte of each page: for every KV
// head an array of keys and one of values, as attention multiplies them.
//
//   keys            [dword of a row][slot]        dwords
//   values  bf16    [slot / 2][column][slot % 2]  bf16
//           others  [slot][column]                elements
//
// So the same columns of keys that are neighbours stand in one vector, and
// those of pairs of values in one dword, as dot products of bf16 take them. A
// row of keys is padded with zeros to whole dwords. With int8 there are two
// more arrays, [slot], of the floats that keys and values are multiplied by.
// Offsets are in bytes; nothing need be aligned, and is faster where arrays
// begin on a cache line.
struct PagedKv {
  ElementType type = ElementType::kF32;  // Not kInt4.
  // In token slots, a multiple of 8; multiples of 16 are read where they lie.
  int32_t page_size = 8;
  int64_t key_offset = 0;          // Of KV head 0.
  int64_t value_offset = 0;        // Of KV head 0.
  int64_t head_stride = 0;         // From one KV head to the next, of all.
  int64_t key_scale_offset = 0;    // Of KV head 0; of int8 only.
  int64_t value_scale_offset = 0;  // Of KV head 0; of int8 only.
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
