// Causal attention over keys and values that lie in pages.

#ifndef RUNTIME_KERNELS_ATTENTION_H_
#define RUNTIME_KERNELS_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/element_type.h"
#include "runtime/base/executor.h"
#include "runtime/kernels/activations.h"
#include "runtime/kernels/aligned_array.h"

namespace folio {

struct AttentionShape {
  int32_t num_heads = 0;     // Query heads.
  int32_t num_kv_heads = 0;  // Divides num_heads; neighbouring heads share one.
  int32_t head_dim = 0;
};

// Where one layer's K and V lie inside each page: for every KV head two arrays
// [page_size][head_dim] of `type`. Offsets in bytes.
struct PagedKv {
  ElementType type = ElementType::kF32;
  int32_t page_size = 0;     // In token slots; any positive number.
  int64_t key_offset = 0;    // Of KV head 0.
  int64_t value_offset = 0;  // Of KV head 0.
  int64_t head_stride = 0;   // From one KV head to the next.
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

// out = softmax(q K^T / sqrt(head_dim)) V, where the token at position p sees
// positions 0 to p, or with a window the last `window` of those, itself
// included (Beltagy et al., "Longformer", 2020; as Mistral has it).
//
// Online softmax (Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018; as FlashAttention uses it): for each row and head, blocks of
// 64 absolute positions are taken in order, and a running maximum, sum and
// weighted value are rescaled when the maximum grows. A row and head goes
// through the same operations in the same order whatever the page size, the
// chunk it came in, its neighbours and the number of workers.
class PagedAttention {
 public:
  // Scratch memory for up to `max_rows` rows in a batch. REQUIRES: a window is
  // at least 1.
  PagedAttention(const AttentionShape& shape, std::optional<int32_t> window,
                 int32_t max_rows, Executor* executor);

  // q is dense; q and out are [rows, num_heads * head_dim], where rows is the
  // end of the last sequence. Rows that belong to no sequence are left alone.
  // Allocates nothing. REQUIRES: sequences do not overlap and end by max_rows.
  void Run(std::span<const float> q,
           std::span<const AttentionSequence> sequences, const PagedKv& kv,
           Activations& out);

 private:
  // Some rows of one sequence and the heads of one KV head: what is computed
  // with each block of K and V while it is in the cache.
  struct Tile {
    const AttentionSequence* sequence;
    int32_t kv_head;
    int32_t first_row;  // Within the sequence.
    int32_t num_rows;
  };
  // Tiles [first, end), about as much work as every other task.
  struct Task {
    int32_t first;
    int32_t end;
  };

  void ListTiles(std::span<const AttentionSequence> sequences);
  int64_t CostOf(const Tile& tile) const;
  void GroupTilesIntoTasks();

  const AttentionShape shape_;
  const int32_t window_;  // The greatest number when there is none.
  const int32_t max_rows_;
  const int32_t rows_per_tile_;
  Executor* const executor_;
  std::vector<Tile> tiles_;
  std::vector<Task> tasks_;
  std::vector<AlignedArray<float>> scratch_;  // One for each worker.
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_ATTENTION_H_
