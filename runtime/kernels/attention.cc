#include "runtime/kernels/attention.h"

#include <glog/logging.h>

#include <algorithm>

namespace folio {
namespace {

// Parts of spans that there is memory for.
int32_t MaxSpanLines(int32_t head_dim, int num_workers) {
  constexpr int64_t kBytesPerWorker = 1 << 20;
  if (num_workers == 1) return 0;
  return static_cast<int32_t>(kBytesPerWorker * num_workers /
                              (int64_t{sizeof(float)} * head_dim));
}

}  // namespace

PagedAttention::PagedAttention(const AttentionShape& shape,
                               std::optional<int32_t> window, int32_t max_rows,
                               Executor* executor)
    : shape_(shape),
      executor_(executor),
      max_span_lines_(MaxSpanLines(shape.head_dim, executor->num_workers())),
      schedule_(shape, window, max_rows, max_span_lines_,
                executor->num_workers()),
      row_sums_(size_t(max_rows) * shape.num_heads * shape.head_dim),
      row_max_(size_t(max_rows) * shape.num_heads),
      row_totals_(row_max_.size()),
      span_sums_(size_t(max_span_lines_) * shape.head_dim),
      span_max_(max_span_lines_),
      span_totals_(span_max_.size()) {
  for (int worker = 0; worker < executor->num_workers(); ++worker) {
    scratch_.emplace_back(
        AttentionScratchBytes(schedule_.max_tile_lines(), shape.head_dim));
  }
}

void PagedAttention::Plan(std::span<const AttentionSequence> sequences) {
  schedule_.Plan(sequences);
}

void PagedAttention::Attend(std::span<const float> q, const PagedKv& kv) {
  CHECK_EQ(kv.page_size % 8, 0);
  executor_->ParallelFor(schedule_.num_tasks(), [&](int task, int worker) {
    const std::span<const AttentionPiece> pieces = schedule_.task(task);
    AttentionTile tile = TileOf(pieces[0], q, kv);
    for (size_t i = 0; i + 1 < pieces.size(); ++i) {
      const AttentionTile next = TileOf(pieces[i + 1], q, kv);
      AttendTile(tile, &next, scratch_[worker].data());
      tile = next;
    }
    AttendTile(tile, /*next=*/nullptr, scratch_[worker].data());
  });
}

void PagedAttention::Finish(Rows rows, Activations& out, Executor& executor) {
  CHECK_EQ(out.cols(), shape_.num_heads * shape_.head_dim);
  CHECK_LE(rows.end(), out.max_rows());
  ParallelRows(executor, rows, [&](Rows some, int worker) {
    for (int32_t row = some.first; row < some.end(); ++row) {
      FinishRow(row, out.BeginRow(row, worker));
      out.EndRow(row, worker);
    }
  });
}

AttentionTile PagedAttention::TileOf(const AttentionPiece& piece,
                                     std::span<const float> q,
                                     const PagedKv& kv) {
  const int32_t group = shape_.num_heads / shape_.num_kv_heads;
  const int32_t width = shape_.num_heads * shape_.head_dim;
  const int32_t row = piece.sequence->first_row + piece.first_row;
  const int32_t head = piece.kv_head * group;
  const bool is_span = piece.first_line >= 0;
  PagedKv head_kv = kv;
  head_kv.key_offset += piece.kv_head * kv.head_stride;
  head_kv.value_offset += piece.kv_head * kv.head_stride;
  head_kv.key_scale_offset += piece.kv_head * kv.head_stride;
  head_kv.value_scale_offset += piece.kv_head * kv.head_stride;
  return {.q = q.data() + size_t(row) * width + head * shape_.head_dim,
          .q_stride = width,
          .num_rows = piece.num_rows,
          .group = group,
          .head_dim = shape_.head_dim,
          .first_position = piece.sequence->first_position + piece.first_row,
          .window = schedule_.window(),
          .first_span = piece.first_span,
          .end_span = piece.end_span,
          .kv = head_kv,
          .pages = piece.sequence->pages.data(),
          .out = is_span ? PartOfSpan(piece.first_line) : PartOfRow(row, head),
          .sums_stride = is_span ? group * shape_.head_dim : width,
          .total_stride = is_span ? group : shape_.num_heads};
}

// Merges all parts of a row, divided by their totals.
void PagedAttention::FinishRow(int32_t row, float* out) {
  const int32_t group = shape_.num_heads / shape_.num_kv_heads;
  for (int32_t head = 0; head < shape_.num_heads; ++head) {
    const AttentionPart part = PartOfRow(row, head);
    const SpanParts& spans = schedule_.span_parts(row, head / group);
    for (int32_t i = 0; i < spans.count; ++i) {
      MergeAttention(
          PartOfSpan(spans.first_line + i * spans.stride + head % group),
          shape_.head_dim, part);
    }
  }
  FinishAttention(PartOfRow(row, 0), shape_.num_heads, shape_.head_dim, out);
}

AttentionPart PagedAttention::PartOfRow(int32_t row, int32_t head) {
  const size_t place = size_t(row) * shape_.num_heads + head;
  return {row_sums_.data() + place * shape_.head_dim, row_max_.data() + place,
          row_totals_.data() + place};
}

AttentionPart PagedAttention::PartOfSpan(int32_t line) {
  return {span_sums_.data() + size_t(line) * shape_.head_dim,
          span_max_.data() + line, span_totals_.data() + line};
}

}  // namespace folio
