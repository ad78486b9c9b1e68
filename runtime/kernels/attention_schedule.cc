#include "runtime/kernels/attention_schedule.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>

#include "runtime/kernels/attention_tile.h"

namespace folio {
namespace {

// Enough that packing K and V costs little beside their products, few enough
// that q, sums and weights stay in the nearer caches.
constexpr int32_t kLinesPerTile = 144;

int32_t RowsPerTile(const AttentionShape& shape) {
  CHECK_GE(shape.num_kv_heads, 1);
  CHECK_GE(shape.head_dim, 1);
  CHECK_EQ(shape.num_heads % shape.num_kv_heads, 0);
  return std::max(1, kLinesPerTile / (shape.num_heads / shape.num_kv_heads));
}

}  // namespace

AttentionSchedule::AttentionSchedule(const AttentionShape& shape,
                                     std::optional<int32_t> window,
                                     int32_t max_rows, int32_t max_lines,
                                     int num_workers)
    : shape_(shape),
      window_(window.value_or(std::numeric_limits<int32_t>::max())),
      rows_per_tile_(RowsPerTile(shape)),
      max_rows_(max_rows),
      max_lines_(max_lines),
      num_workers_(num_workers),
      span_parts_(size_t(max_rows) * shape.num_kv_heads) {
  CHECK_GE(window_, 1);
  // No sequence is empty, so there are at most as many tiles as rows.
  tiles_.reserve(span_parts_.size());
  pieces_.reserve(span_parts_.size() + max_lines / group());
  tasks_.reserve(pieces_.capacity());
}

int32_t AttentionSchedule::max_tile_lines() const {
  return rows_per_tile_ * group();
}

void AttentionSchedule::Plan(std::span<const AttentionSequence> sequences) {
  // A tile that is more than this share of a worker's work is split.
  constexpr int64_t kTilesPerWorker = 8;
  ListTiles(sequences);
  int64_t total = 0;
  for (const AttentionPiece& tile : tiles_) total += CostOf(tile);
  pieces_.clear();
  num_lines_ = 0;
  for (const AttentionPiece& tile : tiles_) {
    int32_t num_split = 0;
    if (num_workers_ > 1 &&
        CostOf(tile) * kTilesPerWorker * num_workers_ > total) {
      num_split =
          std::min(tile.end_span - tile.first_span - 1,
                   (max_lines_ - num_lines_) / (tile.num_rows * group()));
    }
    SplitTile(tile, num_split);
  }
  GroupPiecesIntoTasks(total);
}

void AttentionSchedule::ListTiles(
    std::span<const AttentionSequence> sequences) {
  tiles_.clear();
  for (const AttentionSequence& sequence : sequences) {
    CHECK_LE(sequence.first_row + sequence.num_rows, max_rows_);
  }
  // Head by head: what they read of the pool are places of their own, in which
  // sequences that came one after the other are neighbours.
  for (int32_t head = 0; head < shape_.num_kv_heads; ++head) {
    for (const AttentionSequence& sequence : sequences) {
      for (int32_t row = 0; row < sequence.num_rows; row += rows_per_tile_) {
        const int32_t num_rows =
            std::min(rows_per_tile_, sequence.num_rows - row);
        const int32_t first = sequence.first_position + row;
        const int32_t first_seen = first < window_ ? 0 : first - window_ + 1;
        tiles_.push_back(
            {.sequence = &sequence,
             .kv_head = head,
             .first_row = row,
             .num_rows = num_rows,
             .first_span = first_seen / kAttentionSpan,
             .end_span = (first + num_rows - 1) / kAttentionSpan + 1,
             .first_line = -1});
      }
    }
  }
}

// Roughly proportional to the time: each position costs reading, and then
// something for each line.
int64_t AttentionSchedule::CostOf(const AttentionPiece& piece) const {
  constexpr int64_t kReading = 8;
  const int64_t first = piece.sequence->first_position + piece.first_row;
  const int64_t begin = std::max<int64_t>(
      first - window_ + 1, int64_t{piece.first_span} * kAttentionSpan);
  const int64_t end = std::min<int64_t>(
      first + piece.num_rows, int64_t{piece.end_span} * kAttentionSpan);
  return (end - begin) * (kReading + int64_t{piece.num_rows} * group());
}

// Makes pieces of a tile; its last `num_split` spans one each.
void AttentionSchedule::SplitTile(const AttentionPiece& tile,
                                  int32_t num_split) {
  const int32_t lines = tile.num_rows * group();
  for (int32_t r = 0; r < tile.num_rows; ++r) {
    const int32_t row = tile.sequence->first_row + tile.first_row + r;
    span_parts_[size_t(row) * shape_.num_kv_heads + tile.kv_head] = {
        .first_line = num_lines_ + r * group(),
        .count = num_split,
        .stride = lines};
  }
  AttentionPiece piece = tile;
  piece.end_span = tile.end_span - num_split;
  pieces_.push_back(piece);
  for (; piece.end_span < tile.end_span; num_lines_ += lines) {
    piece.first_span = piece.end_span++;
    piece.first_line = num_lines_;
    pieces_.push_back(piece);
  }
}

void AttentionSchedule::GroupPiecesIntoTasks(int64_t total_cost) {
  // Few enough tasks that most pieces know which one follows, so many that the
  // last ones to finish do so at about the same time.
  constexpr int64_t kTasksPerWorker = 12;
  const int64_t target = total_cost / (kTasksPerWorker * num_workers_);
  const int32_t num_pieces = static_cast<int32_t>(pieces_.size());
  tasks_.clear();
  int64_t cost = 0;
  int32_t first = 0;
  for (int32_t i = 0; i < num_pieces; ++i) {
    cost += CostOf(pieces_[i]);
    if (cost < target && i + 1 < num_pieces) continue;
    tasks_.push_back({first, i + 1});
    first = i + 1;
    cost = 0;
  }
}

}  // namespace folio
