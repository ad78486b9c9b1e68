// What a worker does for attention: one tile, and the end of one head.

#ifndef RUNTIME_KERNELS_ATTENTION_TILE_H_
#define RUNTIME_KERNELS_ATTENTION_TILE_H_

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/attention_input.h"

namespace folio {

// Positions [i * kAttentionSpan, (i + 1) * kAttentionSpan) are span i.
inline constexpr int32_t kAttentionSpan = 512;

// A part of some lines' softmax (a line is a row and a query head): with
// weights w_j = exp2(score_j - max), `sums` are those of w_j v_j and `total` is
// that of w_j. A line that has seen nothing has a total of 0, which no other
// can have.
struct AttentionPart {
  float* sums;   // Of the first line's head_dim columns.
  float* max;    // Of the first line.
  float* total;  // Of the first line.
};

// Some rows of one sequence and the query heads that share one KV head, with
// the positions of some spans. Line i is head i % group of row i / group.
struct AttentionTile {
  const float* q;  // Of the first line; heads are adjacent.
  int32_t q_stride;
  int32_t num_rows;
  int32_t group;  // Query heads on one KV head.
  int32_t head_dim;
  int32_t first_position;  // Of the first row.
  int32_t window;
  int32_t first_span;  // [first_span, end_span)
  int32_t end_span;
  PagedKv kv;  // Its offsets are those of the KV head.
  const std::byte* const* pages;
  AttentionPart out;     // Of line 0.
  int32_t sums_stride;   // From row to row of out.sums; heads are adjacent.
  int32_t total_stride;  // As sums_stride, of out.max and out.total.
};

size_t AttentionScratchBytes(int32_t max_lines, int32_t head_dim);

// Each span's part alone, merged into `out` in ascending order; what was in
// `out` before is forgotten. Asks the memory for q and the first K/V of `next`,
// the tile that this worker will attend to next, if it is known. `scratch` is
// AttentionScratchBytes of memory, aligned to a cache line.
void AttendTile(const AttentionTile& tile, const AttentionTile* next,
                std::byte* scratch);

// Merges `from`, of one line, into `into`.
void MergeAttention(const AttentionPart& from, int32_t head_dim,
                    const AttentionPart& into);

// out[num_lines, head_dim] = sums / total of each line.
void FinishAttention(const AttentionPart& part, int32_t num_lines,
                     int32_t head_dim, float* out);

}  // namespace folio

#endif  // RUNTIME_KERNELS_ATTENTION_TILE_H_
