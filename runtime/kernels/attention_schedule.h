// How the work of attention is cut between workers.

#ifndef RUNTIME_KERNELS_ATTENTION_SCHEDULE_H_
#define RUNTIME_KERNELS_ATTENTION_SCHEDULE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/kernels/attention_input.h"

namespace folio {

// Spans [first_span, end_span) for some rows of one sequence and the query
// heads on one KV head.
struct AttentionPiece {
  const AttentionSequence* sequence;
  int32_t kv_head;
  int32_t first_row;  // Within the sequence.
  int32_t num_rows;
  int32_t first_span;
  int32_t end_span;
  // Where the part goes: that of the rows themselves (-1), or lines from this
  // one on, (row, query head) by (row, query head).
  int32_t first_line;
};

// The parts of one row and KV head that have lines of their own: that of span
// i of `count` in ascending order begins at line first_line + i * stride.
struct SpanParts {
  int32_t first_line = 0;
  int32_t count = 0;
  int32_t stride = 0;
};

// A list of tasks, each of neighbouring pieces. A tile (about 64 lines, rows
// times query heads) is one piece, unless there are so few that workers would
// wait for one another: then the last spans of a tile are pieces of their own,
// whose parts are merged afterwards. Lines for those are bounded; where they
// run out, the first piece keeps more spans.
class AttentionSchedule {
 public:
  // `max_lines`: for parts of pieces of one span.
  AttentionSchedule(const AttentionShape& shape, std::optional<int32_t> window,
                    int32_t max_rows, int32_t max_lines, int num_workers);

  // REQUIRES: as PagedAttention::Run. Allocates nothing. O(tiles + pieces).
  void Plan(std::span<const AttentionSequence> sequences);

  int32_t window() const { return window_; }  // The greatest number for none.
  int32_t max_tile_lines() const;

  int32_t num_tasks() const { return static_cast<int32_t>(tasks_.size()); }
  std::span<const AttentionPiece> task(int32_t i) const {
    return std::span(pieces_).subspan(tasks_[i].first,
                                      tasks_[i].end - tasks_[i].first);
  }

  // What is to be merged into a row of the sequences.
  const SpanParts& span_parts(int32_t row, int32_t kv_head) const {
    return span_parts_[size_t(row) * shape_.num_kv_heads + kv_head];
  }

 private:
  struct Task {
    int32_t first;
    int32_t end;
  };

  int32_t group() const { return shape_.num_heads / shape_.num_kv_heads; }
  void ListTiles(std::span<const AttentionSequence> sequences);
  int64_t CostOf(const AttentionPiece& piece) const;
  void SplitTile(const AttentionPiece& tile, int32_t num_split);
  void GroupPiecesIntoTasks(int64_t total_cost);

  const AttentionShape shape_;
  const int32_t window_;
  const int32_t rows_per_tile_;
  const int32_t max_rows_;
  const int32_t max_lines_;
  const int num_workers_;
  int32_t num_lines_ = 0;              // In use.
  std::vector<AttentionPiece> tiles_;  // Each with all of its spans.
  std::vector<AttentionPiece> pieces_;
  std::vector<Task> tasks_;
  std::vector<SpanParts> span_parts_;  // [max_rows, num_kv_heads]
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_ATTENTION_SCHEDULE_H_
