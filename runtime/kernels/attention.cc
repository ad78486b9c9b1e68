#include "runtime/kernels/attention.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/attention.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "hwy/contrib/math/math-inl.h"
#include "runtime/kernels/vectors-inl.h"

// Compiled once for each target; what does not depend on it, once.
#ifndef RUNTIME_KERNELS_ATTENTION_CC_ONCE
#define RUNTIME_KERNELS_ATTENTION_CC_ONCE
namespace folio {
namespace {

// Positions that one round of the online softmax takes.
constexpr int32_t kBlock = 64;

// Query lines (a row and a head) that share one reading of K and V.
constexpr int32_t kLinesPerTile = 32;

// A worker's scratch memory, for `lines` query lines.
struct Scratch {
  static size_t Floats(int32_t lines, int32_t head_dim) {
    const size_t l = lines;
    const size_t d = head_dim;
    return Padded(l * d) * 2 + Padded(l) * 2 + l * kBlock + 3 * d * kBlock +
           Padded(d);
  }

  Scratch(float* memory, int32_t lines, int32_t head_dim) {
    const size_t l = lines;
    const size_t d = head_dim;
    q = memory;
    sums = q + Padded(l * d);
    max = sums + Padded(l * d);
    total = max + Padded(l);
    weights = total + Padded(l);
    keys = weights + l * kBlock;
    wide_keys = keys + d * kBlock;
    wide_values = wide_keys + d * kBlock;
    no_key = wide_values + d * kBlock;
  }

  // Whole cache lines, so that every array below is aligned.
  static size_t Padded(size_t n) { return (n + 15) / 16 * 16; }

  float* q;        // [lines][head_dim], scaled by 1 / sqrt(head_dim)
  float* sums;     // [lines][head_dim]: weighted values so far
  float* max;      // [lines]: the greatest score so far
  float* total;    // [lines]: sum of weights so far
  float* weights;  // [lines][kBlock]: scores, then weights, of this block
  float* keys;     // [head_dim][kBlock]: this block's keys, transposed
  // This block's keys and values as floats, when the pages hold bf16.
  float* wide_keys;    // [kBlock][head_dim]
  float* wide_values;  // [kBlock][head_dim]
  float* no_key;       // [head_dim]: zeros, for positions that nobody sees
};

// A tile as the kernel sees it; line i is row i / group, head i % group.
struct TileArgs {
  const float* q;  // The first line; row stride `row_stride`, heads adjacent.
  ElementType out_type;
  std::byte* out;  // As q, in elements of out_type.
  int32_t row_stride;
  int32_t num_rows;
  int32_t group;  // Query heads on one KV head.
  int32_t head_dim;
  int32_t first_position;  // Of the first row.
  int32_t window;
  ElementType kv_type;
  const std::byte* const* pages;
  int32_t page_size;
  int64_t key_offset;
  int64_t value_offset;
  Scratch scratch;
};

}  // namespace
}  // namespace folio
#endif  // RUNTIME_KERNELS_ATTENTION_CC_ONCE

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kBlockVectors = kBlock / kLanes;
// Lines and vectors that one inner loop holds in registers.
constexpr int32_t kLinesAtOnce = 4;
constexpr size_t kVectorsAtOnce = kLanes == 16 ? 4 : 2;

// Positions [begin, end) of a block.
struct Range {
  int32_t begin;
  int32_t end;
};

// The part of the block at `start` that positions [begin, end) have.
HWY_INLINE Range InBlock(int32_t begin, int32_t end, int32_t start) {
  return {std::clamp(begin - start, 0, kBlock),
          std::clamp(end - start, 0, kBlock)};
}

// The first position that the token at `position` sees.
HWY_INLINE int32_t FirstSeen(const TileArgs& tile, int32_t position) {
  return position < tile.window ? 0 : position - tile.window + 1;
}

// The part of the block at `start` that any line of the tile sees.
HWY_INLINE Range SeenByTile(const TileArgs& tile, int32_t start) {
  return InBlock(FirstSeen(tile, tile.first_position),
                 tile.first_position + tile.num_rows, start);
}

// Where the rows of K and V of a block begin; only those that the tile sees.
struct StoredRows {
  Range seen;
  const std::byte* keys[kBlock];
  const std::byte* values[kBlock];
};

HWY_INLINE void FindRows(const TileArgs& tile, int32_t start,
                         StoredRows& rows) {
  rows.seen = SeenByTile(tile, start);
  const size_t row_bytes = size_t(tile.head_dim) * BytesOf(tile.kv_type);
  int32_t page = (start + rows.seen.begin) / tile.page_size;
  int32_t slot = (start + rows.seen.begin) % tile.page_size;
  for (int32_t j = rows.seen.begin; j < rows.seen.end;) {
    const std::byte* bytes = tile.pages[page++];
    for (; slot < tile.page_size && j < rows.seen.end; ++slot, ++j) {
      rows.keys[j] = bytes + tile.key_offset + slot * row_bytes;
      rows.values[j] = bytes + tile.value_offset + slot * row_bytes;
    }
    slot = 0;
  }
}

// The same as floats; keys that the tile does not see are zeros.
struct BlockRows {
  const float* keys[kBlock];
  const float* values[kBlock];
};

HWY_INLINE const float* Widen(const std::byte* stored, int32_t head_dim,
                              float* wide) {
  const uint16_t* from = reinterpret_cast<const uint16_t*>(stored);
  ForEachPiece(head_dim, [&](size_t i, size_t n) {
    StorePart(LoadPart(from + i, n), wide + i, n);
  });
  return wide;
}

HWY_INLINE void WidenRows(const TileArgs& tile, const StoredRows& stored,
                          BlockRows& rows) {
  const Scratch& s = tile.scratch;
  for (int32_t j = 0; j < kBlock; ++j) {
    if (j < stored.seen.begin || j >= stored.seen.end) {
      rows.keys[j] = s.no_key;
    } else if (tile.kv_type == ElementType::kF32) {
      rows.keys[j] = reinterpret_cast<const float*>(stored.keys[j]);
      rows.values[j] = reinterpret_cast<const float*>(stored.values[j]);
    } else {
      const size_t place = size_t(j) * tile.head_dim;
      rows.keys[j] = Widen(stored.keys[j], tile.head_dim, s.wide_keys + place);
      rows.values[j] =
          Widen(stored.values[j], tile.head_dim, s.wide_values + place);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// Lanes 4 * b .. 4 * b + 3 come from rows[4 * b][column ..].
template <class D>
HWY_INLINE hn::Vec<D> LoadFourColumns(D d, const float* const* rows,
                                      int32_t column) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return hn::LoadU(d, rows[0] + column);
  } else {
    const hn::Half<D> half;
    return hn::Combine(
        d, LoadFourColumns(half, rows + hn::MaxLanes(D()) / 2, column),
        LoadFourColumns(half, rows, column));
  }
}

// Writes columns [column, column + 4) of kLanes keys, transposed.
HWY_INLINE void TransposeFourColumns(const float* const* rows, int32_t column,
                                     float* out) {
  const FloatTag d;
  const hn::RepartitionToWide<hn::RebindToUnsigned<FloatTag>> pairs;
  const V a = LoadFourColumns(d, rows, column);
  const V b = LoadFourColumns(d, rows + 1, column);
  const V c = LoadFourColumns(d, rows + 2, column);
  const V e = LoadFourColumns(d, rows + 3, column);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  const auto store = [&](auto value, size_t i) {
    hn::Store(hn::BitCast(d, value), d, out + i * kBlock);
  };
  store(hn::InterleaveLower(pairs, ab_low, ce_low), 0);
  store(hn::InterleaveUpper(pairs, ab_low, ce_low), 1);
  store(hn::InterleaveLower(pairs, ab_high, ce_high), 2);
  store(hn::InterleaveUpper(pairs, ab_high, ce_high), 3);
}

#endif  // HWY_TARGET != HWY_SCALAR

// Makes the keys of a block [head_dim][kBlock]: then each lane sums one score,
// over head_dim in order.
HWY_INLINE void TransposeKeys(const BlockRows& rows, int32_t head_dim,
                              float* keys) {
  int32_t column = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; column + 4 <= head_dim; column += 4) {
    for (int32_t j = 0; j < kBlock; j += kLanes) {
      TransposeFourColumns(rows.keys + j, column,
                           keys + size_t(column) * kBlock + j);
    }
  }
#endif
  for (; column < head_dim; ++column) {
    for (int32_t j = 0; j < kBlock; ++j) {
      keys[size_t(column) * kBlock + j] = rows.keys[j][column];
    }
  }
}

// weights[kLines][kBlock] = q[kLines][head_dim] x keys[head_dim][kBlock].
template <int32_t kLines>
HWY_INLINE void Scores(const float* q, const float* keys, int32_t head_dim,
                       float* weights) {
  const FloatTag d;
  for (size_t j = 0; j < kBlock; j += kVectorsAtOnce * kLanes) {
    V sum[kLines][kVectorsAtOnce];
    for (int32_t l = 0; l < kLines; ++l) {
      for (size_t v = 0; v < kVectorsAtOnce; ++v) sum[l][v] = hn::Zero(d);
    }
    for (int32_t column = 0; column < head_dim; ++column) {
      V key[kVectorsAtOnce];
      for (size_t v = 0; v < kVectorsAtOnce; ++v) {
        key[v] = hn::Load(d, keys + size_t(column) * kBlock + j + v * kLanes);
      }
      for (int32_t l = 0; l < kLines; ++l) {
        const V factor = hn::Set(d, q[size_t(l) * head_dim + column]);
        for (size_t v = 0; v < kVectorsAtOnce; ++v) {
          sum[l][v] = hn::MulAdd(factor, key[v], sum[l][v]);
        }
      }
    }
    for (int32_t l = 0; l < kLines; ++l) {
      for (size_t v = 0; v < kVectorsAtOnce; ++v) {
        hn::Store(sum[l][v], d, weights + size_t(l) * kBlock + j + v * kLanes);
      }
    }
  }
}

// Turns one line's scores into weights exp(score - max); positions that it does
// not see get 0. Updates the line's maximum and total, and rescales its sums.
HWY_INLINE void Softmax(float* weights, Range seen, int32_t head_dim,
                        float& max, float& total, float* sums) {
  const FloatTag d;
  const V nothing = hn::Set(d, -std::numeric_limits<float>::infinity());
  V greatest = nothing;
  for (size_t v = 0; v < kBlockVectors; ++v) {
    float* place = weights + v * kLanes;
    const auto before = [&](int32_t position) {
      const int32_t left = position - static_cast<int32_t>(v * kLanes);
      return hn::FirstN(d, static_cast<size_t>(std::max(left, 0)));
    };
    const auto is_seen = hn::AndNot(before(seen.begin), before(seen.end));
    const V score = hn::IfThenElse(is_seen, hn::Load(d, place), nothing);
    hn::Store(score, d, place);
    greatest = hn::Max(greatest, score);
  }
  const float new_max = std::max(max, hn::GetLane(hn::MaxOfLanes(d, greatest)));
  const V shift = hn::Set(d, new_max);
  V sum = hn::Zero(d);
  for (size_t v = 0; v < kBlockVectors; ++v) {
    float* place = weights + v * kLanes;
    const V score = hn::Load(d, place);
    // Exp makes 0 of NaN, which would hide it.
    const V weight = hn::IfThenElse(hn::IsNaN(score), score,
                                    hn::Exp(d, hn::Sub(score, shift)));
    hn::Store(weight, d, place);
    sum = hn::Add(sum, weight);
  }
  const float rescale = hn::GetLane(hn::Exp(d, hn::Set(d, max - new_max)));
  total = total * rescale + hn::GetLane(hn::SumOfLanes(d, sum));
  max = new_max;
  if (rescale == 1.0f) return;  // Then multiplying changes no bit.
  const int32_t whole = head_dim / kLanes * kLanes;
  for (int32_t i = 0; i < whole; i += kLanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, sums + i), hn::Set(d, rescale)), d,
               sums + i);
  }
  for (int32_t i = whole; i < head_dim; ++i) sums[i] *= rescale;
}

// sums[kLines][kVectors] at `column` += weights x values, for positions
// [from, to) of the block in order.
template <int32_t kLines, size_t kVectors>
HWY_INLINE void AddColumns(const float* weights, const BlockRows& rows,
                           int32_t from, int32_t to, int32_t column,
                           int32_t head_dim, float* sums) {
  const FloatTag d;
  V sum[kLines][kVectors];
  for (int32_t l = 0; l < kLines; ++l) {
    for (size_t v = 0; v < kVectors; ++v) {
      sum[l][v] =
          hn::LoadU(d, sums + size_t(l) * head_dim + column + v * kLanes);
    }
  }
  for (int32_t j = from; j < to; ++j) {
    V value[kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
      value[v] = hn::LoadU(d, rows.values[j] + column + v * kLanes);
    }
    for (int32_t l = 0; l < kLines; ++l) {
      const V weight = hn::Set(d, weights[size_t(l) * kBlock + j]);
      for (size_t v = 0; v < kVectors; ++v) {
        sum[l][v] = hn::MulAdd(weight, value[v], sum[l][v]);
      }
    }
  }
  for (int32_t l = 0; l < kLines; ++l) {
    for (size_t v = 0; v < kVectors; ++v) {
      hn::StoreU(sum[l][v], d,
                 sums + size_t(l) * head_dim + column + v * kLanes);
    }
  }
}

// All columns of AddColumns.
template <int32_t kLines>
HWY_INLINE void AddValues(const float* weights, const BlockRows& rows,
                          int32_t from, int32_t to, int32_t head_dim,
                          float* sums) {
  if (from >= to) return;
  constexpr int32_t kStep = kVectorsAtOnce * kLanes;
  int32_t column = 0;
  for (; column + kStep <= head_dim; column += kStep) {
    AddColumns<kLines, kVectorsAtOnce>(weights, rows, from, to, column,
                                       head_dim, sums);
  }
  for (; column + kLanes <= head_dim; column += kLanes) {
    AddColumns<kLines, 1>(weights, rows, from, to, column, head_dim, sums);
  }
  for (; column < head_dim; ++column) {
    for (int32_t l = 0; l < kLines; ++l) {
      float& sum = sums[size_t(l) * head_dim + column];
      for (int32_t j = from; j < to; ++j) {
        sum += weights[size_t(l) * kBlock + j] * rows.values[j][column];
      }
    }
  }
}

// The part of the block at `start` that a line sees.
HWY_INLINE Range Seen(const TileArgs& tile, int32_t line, int32_t start) {
  const int32_t position = tile.first_position + line / tile.group;
  return InBlock(FirstSeen(tile, position), position + 1, start);
}

// One block for kLines lines from `line` on.
template <int32_t kLines>
HWY_INLINE void AttendLines(const TileArgs& tile, const BlockRows& rows,
                            int32_t start, int32_t line) {
  const Scratch& s = tile.scratch;
  const int32_t head_dim = tile.head_dim;
  float* weights = s.weights + size_t(line) * kBlock;
  float* sums = s.sums + size_t(line) * head_dim;
  Scores<kLines>(s.q + size_t(line) * head_dim, s.keys, head_dim, weights);
  for (int32_t l = 0; l < kLines; ++l) {
    const Range seen = Seen(tile, line + l, start);
    if (seen.begin >= seen.end) continue;
    Softmax(weights + size_t(l) * kBlock, seen, head_dim, s.max[line + l],
            s.total[line + l], sums + size_t(l) * head_dim);
  }
  // Both ends of what a line sees ascend from line to line. What a line does
  // not see is not even multiplied by 0: its memory may hold anything. Each
  // line adds its positions in order, alone or with the others.
  const int32_t all_begin = Seen(tile, line + kLines - 1, start).begin;
  const int32_t all_end = std::max(all_begin, Seen(tile, line, start).end);
  const auto add_alone = [&](int32_t l, int32_t from, int32_t to) {
    AddValues<1>(weights + size_t(l) * kBlock, rows, from, to, head_dim,
                 sums + size_t(l) * head_dim);
  };
  for (int32_t l = 0; l + 1 < kLines; ++l) {
    const Range seen = Seen(tile, line + l, start);
    add_alone(l, seen.begin, std::min(seen.end, all_begin));
  }
  AddValues<kLines>(weights, rows, all_begin, all_end, head_dim, sums);
  for (int32_t l = 1; l < kLines; ++l) {
    const Range seen = Seen(tile, line + l, start);
    add_alone(l, std::max(seen.begin, all_end), seen.end);
  }
}

void StartLines(const TileArgs& tile) {
  const Scratch& s = tile.scratch;
  const float scale = 1.0f / std::sqrt(static_cast<float>(tile.head_dim));
  const int32_t num_lines = tile.num_rows * tile.group;
  const size_t row_width = size_t(tile.group) * tile.head_dim;
  for (int32_t r = 0; r < tile.num_rows; ++r) {
    for (size_t i = 0; i < row_width; ++i) {
      s.q[r * row_width + i] = tile.q[size_t(r) * tile.row_stride + i] * scale;
    }
  }
  std::fill_n(s.sums, num_lines * size_t(tile.head_dim), 0.0f);
  std::fill_n(s.max, num_lines, -std::numeric_limits<float>::infinity());
  std::fill_n(s.total, num_lines, 0.0f);
}

template <typename T>
HWY_INLINE void FinishLines(const TileArgs& tile, T* out_start) {
  const Scratch& s = tile.scratch;
  for (int32_t line = 0; line < tile.num_rows * tile.group; ++line) {
    const float* sums = s.sums + size_t(line) * tile.head_dim;
    T* out = out_start + size_t(line / tile.group) * tile.row_stride +
             size_t(line % tile.group) * tile.head_dim;
    const V total = hn::Set(FloatTag(), s.total[line]);
    ForEachPiece(tile.head_dim, [&](size_t i, size_t n) {
      StorePart(hn::Div(LoadPart(sums + i, n), total), out + i, n);
    });
  }
}

// Asks for the rows of a block before they are needed: the hardware does not
// foresee the jump from page to page.
HWY_INLINE void PrefetchRows(const std::byte* const* rows, Range seen,
                             int32_t row_bytes) {
  for (int32_t j = seen.begin; j < seen.end; ++j) {
    for (int32_t i = 0; i < row_bytes; i += kCacheLineBytes) {
      hwy::Prefetch(rows[j] + i);
    }
  }
}

void AttendTile(const TileArgs& tile) {
  StartLines(tile);
  const int32_t num_lines = tile.num_rows * tile.group;
  const int32_t row_bytes = tile.head_dim * BytesOf(tile.kv_type);
  const int32_t end = tile.first_position + tile.num_rows;
  int32_t start = FirstSeen(tile, tile.first_position) / kBlock * kBlock;
  StoredRows stored;
  FindRows(tile, start, stored);
  for (; start < end; start += kBlock) {
    BlockRows rows;
    WidenRows(tile, stored, rows);
    FindRows(tile, start + kBlock, stored);
    PrefetchRows(stored.keys, stored.seen, row_bytes);
    TransposeKeys(rows, tile.head_dim, tile.scratch.keys);
    PrefetchRows(stored.values, stored.seen, row_bytes);
    int32_t line = 0;
    for (; line + kLinesAtOnce <= num_lines; line += kLinesAtOnce) {
      AttendLines<kLinesAtOnce>(tile, rows, start, line);
    }
    for (; line < num_lines; ++line) AttendLines<1>(tile, rows, start, line);
  }
  if (tile.out_type == ElementType::kF32) {
    FinishLines(tile, reinterpret_cast<float*>(tile.out));
  } else {
    FinishLines(tile, reinterpret_cast<uint16_t*>(tile.out));
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace folio {
namespace {
HWY_EXPORT(AttendTile);

int32_t RowsPerTile(const AttentionShape& shape) {
  CHECK_GE(shape.num_kv_heads, 1);
  CHECK_GE(shape.head_dim, 1);
  CHECK_EQ(shape.num_heads % shape.num_kv_heads, 0);
  return std::max(1, kLinesPerTile / (shape.num_heads / shape.num_kv_heads));
}
}  // namespace

PagedAttention::PagedAttention(const AttentionShape& shape,
                               std::optional<int32_t> window, int32_t max_rows,
                               Executor* executor)
    : shape_(shape),
      window_(window.value_or(std::numeric_limits<int32_t>::max())),
      max_rows_(max_rows),
      rows_per_tile_(RowsPerTile(shape)),
      executor_(executor) {
  CHECK_GE(window_, 1);
  // No sequence is empty, so there are at most as many tiles as rows.
  tiles_.reserve(size_t(max_rows) * shape.num_kv_heads);
  tasks_.reserve(tiles_.capacity());
  const int32_t lines = rows_per_tile_ * (shape.num_heads / shape.num_kv_heads);
  for (int worker = 0; worker < executor->num_workers(); ++worker) {
    scratch_.emplace_back(Scratch::Floats(lines, shape.head_dim));
  }
}

void PagedAttention::ListTiles(std::span<const AttentionSequence> sequences) {
  tiles_.clear();
  for (const AttentionSequence& sequence : sequences) {
    CHECK_LE(sequence.first_row + sequence.num_rows, max_rows_);
    for (int32_t head = 0; head < shape_.num_kv_heads; ++head) {
      for (int32_t row = 0; row < sequence.num_rows; row += rows_per_tile_) {
        tiles_.push_back({&sequence, head, row,
                          std::min(rows_per_tile_, sequence.num_rows - row)});
      }
    }
  }
}

// Roughly proportional to the time: each position costs reading, and then
// something for each line.
int64_t PagedAttention::CostOf(const Tile& tile) const {
  constexpr int64_t kReading = 4;
  const int64_t end =
      tile.sequence->first_position + tile.first_row + tile.num_rows;
  const int64_t positions = std::min(end, int64_t{window_} + tile.num_rows);
  const int64_t lines =
      int64_t{tile.num_rows} * (shape_.num_heads / shape_.num_kv_heads);
  return positions * (kReading + lines);
}

void PagedAttention::GroupTilesIntoTasks() {
  // Few enough tasks that starting them costs little, so many that the last
  // ones to finish do so at about the same time.
  constexpr int64_t kTasksPerWorker = 16;
  int64_t total = 0;
  for (const Tile& tile : tiles_) total += CostOf(tile);
  const int64_t target = total / (kTasksPerWorker * executor_->num_workers());
  tasks_.clear();
  int64_t cost = 0;
  int32_t first = 0;
  for (int32_t i = 0; i < static_cast<int32_t>(tiles_.size()); ++i) {
    cost += CostOf(tiles_[i]);
    if (cost < target && i + 1 < static_cast<int32_t>(tiles_.size())) continue;
    tasks_.push_back({first, i + 1});
    first = i + 1;
    cost = 0;
  }
}

void PagedAttention::Run(std::span<const float> q,
                         std::span<const AttentionSequence> sequences,
                         const PagedKv& kv, Activations& out) {
  CHECK_GE(kv.page_size, 1);
  CHECK_EQ(out.cols(), shape_.num_heads * shape_.head_dim);
  ListTiles(sequences);
  GroupTilesIntoTasks();
  const int32_t group = shape_.num_heads / shape_.num_kv_heads;
  const int32_t row_stride = shape_.num_heads * shape_.head_dim;
  const auto attend = [&](const Tile& tile, int worker) {
    const int32_t row = tile.sequence->first_row + tile.first_row;
    const int32_t column = tile.kv_head * group * shape_.head_dim;
    CHECK_LE(row + tile.num_rows, out.max_rows());
    HWY_DYNAMIC_DISPATCH(AttendTile)
    (TileArgs{.q = q.data() + size_t(row) * row_stride + column,
              .out_type = out.type(),
              .out = out.MutableRow(row) + column * BytesOf(out.type()),
              .row_stride = row_stride,
              .num_rows = tile.num_rows,
              .group = group,
              .head_dim = shape_.head_dim,
              .first_position = tile.sequence->first_position + tile.first_row,
              .window = window_,
              .kv_type = kv.type,
              .pages = tile.sequence->pages.data(),
              .page_size = kv.page_size,
              .key_offset = kv.key_offset + tile.kv_head * kv.head_stride,
              .value_offset = kv.value_offset + tile.kv_head * kv.head_stride,
              .scratch = Scratch(scratch_[worker].data(),
                                 rows_per_tile_ * group, shape_.head_dim)});
  };
  executor_->ParallelFor(
      static_cast<int>(tasks_.size()), [&](int task, int worker) {
        for (int32_t i = tasks_[task].first; i < tasks_[task].end; ++i) {
          attend(tiles_[i], worker);
        }
      });
}

}  // namespace folio
#endif  // HWY_ONCE
