// Causal attention over keys and values that lie in pages.

#ifndef RUNTIME_KERNELS_ATTENTION_H_
#define RUNTIME_KERNELS_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/executor.h"
#include "runtime/kernels/activations.h"
#include "runtime/kernels/aligned_array.h"
#include "runtime/kernels/attention_input.h"
#include "runtime/kernels/attention_schedule.h"
#include "runtime/kernels/attention_tile.h"
#include "runtime/kernels/parallel_rows.h"

namespace folio {

// out = softmax(q K^T / sqrt(head_dim)) V, where the token at position p sees
// positions 0 to p, or with a window the last `window` of those, itself
// included (Beltagy et al., "Longformer", 2020; as Mistral has it).
//
// Online softmax (Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018; in tiles as in Dao et al., "FlashAttention", 2022): for each
// row and head, blocks of 64 absolute positions are taken in order, and a
// running maximum, sum and weighted value are rescaled when the maximum grows.
// Each span of 512 absolute positions starts afresh; the parts of a row's spans
// are merged in ascending order (as "Flash-Decoding", Dao et al., 2023, merges
// those of its splits). So a span may be anybody's work, and a row and head go
// through the same operations in the same order whatever the page size, the
// chunk it came in, its neighbours and the number of workers.
//
// q is multiplied by log2(e) / sqrt(head_dim), so that weights are powers of 2.
// With K/V of f32, products are f32. With bf16, q (then) and the weights are
// rounded to bf16, products are exact and sums f32; a row's weights are divided
// by the sum of what they were rounded to. With int8 the same, where scales of
// K multiply the scores, and those of V the weights before they are rounded;
// the sum is that of weights before both. (An int8 is exact as bf16.)
//
// A sequence with K or V that is not finite gets NaN in the rows that see it,
// and may in other rows of its own; no other sequence does.
//
// A row costs O(positions seen * heads * head_dim), and K/V is read once for
// all query heads that share it and about 64 lines (rows times those heads).
class PagedAttention {
 public:
  // Memory for up to `max_rows` rows in a batch: as much as q has, 1 MiB for
  // each worker for parts of spans, and a tile's scratch. REQUIRES: a window is
  // at least 1.
  PagedAttention(const AttentionShape& shape, std::optional<int32_t> window,
                 int32_t max_rows, Executor* executor);

  // Divides the work of a batch, for all layers. Allocates nothing; O(tiles).
  // `sequences` must stay until the last Run. REQUIRES: they do not overlap and
  // end by max_rows.
  void Plan(std::span<const AttentionSequence> sequences);

  // One layer of the planned batch, but for Finish. q is dense, [rows,
  // num_heads * head_dim], where rows is the end of the last sequence.
  // Allocates nothing.
  void Attend(std::span<const float> q, const PagedKv& kv);

  // Writes `rows` of the last Attend to those of `out`, [rows, num_heads *
  // head_dim]. Two calls at the same time may have executors of one worker
  // each and other rows. REQUIRES: they belong to sequences. Allocates nothing.
  void Finish(Rows rows, Activations& out, Executor& executor);

 private:
  AttentionTile TileOf(const AttentionPiece& piece, std::span<const float> q,
                       const PagedKv& kv);
  void FinishRow(int32_t row, float* out);
  AttentionPart PartOfRow(int32_t row, int32_t head);
  AttentionPart PartOfSpan(int32_t line);

  const AttentionShape shape_;
  Executor* const executor_;
  const int32_t max_span_lines_;
  AttentionSchedule schedule_;
  // Each row's and head's part of the spans that are merged as they go.
  AlignedArray<float> row_sums_;    // [max_rows, num_heads, head_dim]
  AlignedArray<float> row_max_;     // [max_rows, num_heads]
  AlignedArray<float> row_totals_;  // [max_rows, num_heads]
  // Parts of one span each, of lines as the schedule numbers them.
  AlignedArray<float> span_sums_;  // [lines, head_dim]
  AlignedArray<float> span_max_;
  AlignedArray<float> span_totals_;
  std::vector<AlignedArray<std::byte>> scratch_;  // One for each worker.
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_ATTENTION_H_
