#include "runtime/kernels/attention_tile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

// Highway leaves this target out unless it is asked for.
#define HWY_WANT_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/attention_tile.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/aligned_array.h"
#include "runtime/kernels/instruction_set.h"
#include "runtime/kernels/softmax-inl.h"

// Compiled once for each target; what does not depend on it, once.
#ifndef RUNTIME_KERNELS_ATTENTION_TILE_CC_ONCE
#define RUNTIME_KERNELS_ATTENTION_TILE_CC_ONCE
namespace folio {
namespace {

// The most lanes of a vector, columns written at once, and lines of an inner
// loop.
constexpr size_t kMostLanes = 16;
constexpr size_t kMostColumns = 32;
constexpr size_t kMostLines = 6;
constexpr size_t kPositions = 64;  // Of a block.

size_t RoundUp(size_t size, size_t step) {
  return (size + step - 1) / step * step;
}

// A worker's memory, for `lines` query lines. Elements are those of the
// policy; every array begins on a cache line.
struct Scratch {
  Scratch(std::byte* memory, size_t lines, size_t head_dim) {
    const size_t dim = RoundUp(head_dim, kMostColumns);
    std::byte* next = memory;
    const auto take = [&](size_t size) {
      std::byte* const taken = next;
      next += RoundUp(size, kCacheLineBytes);
      return taken;
    };
    const auto floats = [&](size_t size) {
      return reinterpret_cast<float*>(take(size * sizeof(float)));
    };
    const auto dwords = [&](size_t size) {
      return reinterpret_cast<uint32_t*>(take(size * sizeof(uint32_t)));
    };
    q = take(lines * dim * sizeof(float));
    sums = floats(lines * dim);
    max = floats(lines);
    partial = floats(lines * kMostLanes);
    scores = floats(kMostLines * kPositions);
    weights = take(kMostLines * kPositions * sizeof(float));
    keys = dwords(dim * kPositions);
    values = dwords(dim * kPositions);
    quads = dwords(dim / 4 * kPositions);
    copies = take(dim * sizeof(uint16_t) * kPositions);
    key_scales = floats(kPositions);
    value_scales = floats(kPositions);
    zeros = take(dim * sizeof(float));
    bytes = next - memory;
  }

  std::byte* q;         // [lines][elements of a row]: rounded
  float* sums;          // [lines][padded dim]: weighted values of this span
  float* max;           // [lines]: the greatest score of this span
  float* partial;       // [lines][kLanes]: sums of weights of this span
  float* scores;        // [kLines][kBlock]
  std::byte* weights;   // [kLines][kBlock] elements
  uint32_t* keys;       // [dwords of a row][kBlock]: this block's, transposed
  uint32_t* values;     // [kBlock or kBlock / 2][padded dim]: this block's
  uint32_t* quads;      // [head_dim / 4][kBlock], for keys of int8
  std::byte* copies;    // [kBlock] rows that are not whole dwords
  float* key_scales;    // [kBlock]: what scores are multiplied by
  float* value_scales;  // [kBlock]: what weights are multiplied by
  std::byte* zeros;     // A row for positions that nobody sees.
  size_t bytes;
};

}  // namespace
}  // namespace folio
#endif  // RUNTIME_KERNELS_ATTENTION_TILE_CC_ONCE

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {
namespace {

// Attends to one tile, with the policy P and K/V stored as T.
template <class P, typename T>
class TileKernel {
 public:
  TileKernel(const AttentionTile& tile, const AttentionTile* next,
             std::byte* memory)
      : tile_(tile),
        next_(next),
        num_lines_(tile.num_rows * tile.group),
        dim_(RoundUp(tile.head_dim, kPackedColumns<T>)),
        key_dwords_(sizeof(T) == 1 ? (tile.head_dim + 3) / 4 * 2
                                   : (tile.head_dim * sizeof(T) + 3) / 4),
        q_stride_(key_dwords_ * P::kElementsPerDword),
        s_(memory, num_lines_, tile.head_dim) {}

  void Run() {
    RoundQueries();
    std::fill_n(s_.zeros, dim_ * sizeof(float), std::byte{0});
    std::fill_n(s_.key_scales, kBlock, ScoreFactor());
    for (int32_t r = 0; r < tile_.num_rows; ++r) {
      std::fill_n(tile_.out.total + r * tile_.total_stride, tile_.group, 0.0f);
    }
    const int32_t end = std::min(tile_.first_position + tile_.num_rows,
                                 tile_.end_span * kAttentionSpan);
    int32_t start = FirstBlock(tile_);
    BlockRows rows[2];
    FindRows(tile_, start, s_.zeros, rows[0]);
    Prefetcher(rows[0], tile_.head_dim * sizeof(T)).AskForRest();
    StartSpan();
    for (int32_t i = 0; start < end; start += kBlock, i ^= 1) {
      if (start + kBlock < end || next_ == nullptr) {
        FindRows(tile_, start + kBlock, s_.zeros, rows[i ^ 1]);
      } else {
        FindRows(*next_, FirstBlock(*next_), s_.zeros, rows[i ^ 1]);
      }
      AttendBlock(rows[i], rows[i ^ 1], start);
      const int32_t next = start + kBlock;
      if (next < end && next % kAttentionSpan != 0) continue;
      FinishSpan();
      StartSpan();
    }
  }

 private:
  using Element = typename P::Element;
  static constexpr bool kHasScales = std::is_same_v<T, int8_t>;

  // Where the first block of a tile begins.
  static int32_t FirstBlock(const AttentionTile& tile) {
    return std::max(FirstSeen(tile, tile.first_position),
                    tile.first_span * kAttentionSpan) /
           kBlock * kBlock;
  }

  // Scores are powers of 2, so that weights need no other exponential.
  float ScoreFactor() const {
    return static_cast<float>(std::numbers::log2e /
                              std::sqrt(static_cast<double>(tile_.head_dim)));
  }
  Element* q(int32_t line) const {
    return reinterpret_cast<Element*>(s_.q) + line * q_stride_;
  }

  void RoundQueries() {
    const size_t dim = tile_.head_dim;
    for (int32_t line = 0; line < num_lines_; ++line) {
      const float* from = tile_.q +
                          size_t(line / tile_.group) * tile_.q_stride +
                          line % tile_.group * dim;
      ForEachPiece(dim, [&](size_t i, size_t n) {
        StorePart(LoadPart(from + i, n), q(line) + i, n);
      });
      std::fill(q(line) + dim, q(line) + q_stride_, Element{0});
    }
  }

  void StartSpan() {
    std::fill_n(s_.sums, num_lines_ * dim_, 0.0f);
    std::fill_n(s_.max, num_lines_, -std::numeric_limits<float>::infinity());
    std::fill_n(s_.partial, num_lines_ * kMostLanes, 0.0f);
  }

  void FinishSpan() {
    const FloatTag d;
    for (int32_t line = 0; line < num_lines_; ++line) {
      const size_t row = line / tile_.group;
      const size_t head = line % tile_.group;
      float total = hn::GetLane(
          hn::SumOfLanes(d, hn::Load(d, s_.partial + line * kMostLanes)));
      const size_t place = row * tile_.total_stride + head;
      OrderColumns<T>(s_.sums + line * dim_, dim_);
      MergePart(
          {s_.sums + line * dim_, s_.max + line, &total}, tile_.head_dim,
          {tile_.out.sums + row * tile_.sums_stride + head * tile_.head_dim,
           tile_.out.max + place, tile_.out.total + place});
    }
  }

  void AttendBlock(const BlockRows& rows, const BlockRows& next,
                   int32_t start) {
    Prefetcher prefetcher(next, tile_.head_dim * sizeof(T));
    if constexpr (kHasScales) {
      LoadScales(tile_, start, rows.seen, ScoreFactor(), s_.key_scales,
                 s_.value_scales);
    }
    PackKeys<T>(rows, prefetcher, tile_.head_dim, s_.copies, s_.quads, s_.keys);
    PackValues<T>(rows, prefetcher, tile_.head_dim, dim_, s_.values);
    int32_t line = 0;
    for (; line + P::kLines <= num_lines_; line += P::kLines) {
      AttendLines<P::kLines>(start, line, prefetcher);
    }
    AttendLastLines<P::kLines - 1>(start, line, prefetcher);
    prefetcher.AskForRest();
  }

  // num_lines_ - line is at most kLines.
  template <int32_t kLines>
  void AttendLastLines(int32_t start, int32_t line, Prefetcher& prefetcher) {
    if (num_lines_ - line == kLines) {
      AttendLines<kLines>(start, line, prefetcher);
    } else if constexpr (kLines > 1) {
      AttendLastLines<kLines - 1>(start, line, prefetcher);
    }
  }

  // The part of the block at `start` that a line sees.
  Range Seen(int32_t line, int32_t start) const {
    const int32_t position = tile_.first_position + line / tile_.group;
    return InBlock(FirstSeen(tile_, position), position + 1, start);
  }

  // One block for lines [line, line + kLines).
  template <int32_t kLines>
  HWY_NOINLINE void AttendLines(int32_t start, int32_t line,
                                Prefetcher& prefetcher) {
    const auto between = [&] { prefetcher.AskForRow(); };
    // Both ends of what a line sees ascend from line to line.
    const Range any = {Seen(line, start).begin,
                       Seen(line + kLines - 1, start).end};
    if (any.begin >= any.end) return;
    std::fill_n(s_.scores, kLines * kBlock, 0.0f);
    // Half of the columns, where no line sees the others.
    if (any.end <= kBlock / 2) {
      constexpr int32_t kVectors =
          std::min(kVectorsAtOnce, kBlock / 2 / kLanes);
      for (int32_t j = 0; j < kBlock / 2; j += kVectors * kLanes) {
        AddProducts<P, kLines, kVectors>(q(line), q_stride_, s_.keys + j,
                                         kBlock, 0, key_dwords_, s_.scores + j,
                                         kBlock, between);
      }
    } else {
      AddAllProducts<P, kLines>(q(line), q_stride_, s_.keys, kBlock, 0,
                                key_dwords_, kBlock, s_.scores, between);
    }
    Element* const weights = reinterpret_cast<Element*>(s_.weights);
    for (int32_t l = 0; l < kLines; ++l) {
      const Range seen = Seen(line + l, start);
      if (seen.begin >= seen.end) {
        std::fill_n(weights + l * kBlock, kBlock, Element{0});
        continue;
      }
      Softmax<P, kHasScales>(s_.scores + l * kBlock, s_.key_scales,
                             s_.value_scales, seen, dim_,
                             {s_.sums + (line + l) * dim_, s_.max + line + l,
                              s_.partial + (line + l) * kMostLanes},
                             weights + l * kBlock);
    }
    // Weights of 0 change no sum, so that those of all lines may be left out.
    constexpr int32_t kStep = P::kElementsPerDword;
    AddAllProducts<P, kLines>(weights, kBlock, s_.values, dim_,
                              any.begin / kStep, (any.end + kStep - 1) / kStep,
                              dim_, s_.sums + line * dim_, between);
  }

  const AttentionTile& tile_;
  const AttentionTile* const next_;
  const int32_t num_lines_;
  const size_t dim_;         // padded
  const size_t key_dwords_;  // Of one key as it is multiplied.
  const size_t q_stride_;    // In elements.
  const Scratch s_;
};

template <class Pairs>
void AttendInPairs(const AttentionTile& tile, const AttentionTile* next,
                   std::byte* scratch) {
  if (tile.kv.type == ElementType::kBf16) {
    TileKernel<Pairs, uint16_t>(tile, next, scratch).Run();
  } else {
    TileKernel<Pairs, int8_t>(tile, next, scratch).Run();
  }
}

void AttendOnTarget(const AttentionTile& tile, const AttentionTile* next,
                    std::byte* scratch) {
  if (tile.kv.type == ElementType::kF32) {
    TileKernel<FloatDots, float>(tile, next, scratch).Run();
    return;
  }
#if HWY_TARGET == HWY_AVX3_DL
  if (HasBf16DotProducts()) {
    AttendInPairs<DotPairs>(tile, next, scratch);
    return;
  }
#endif
  AttendInPairs<EmulatedPairs>(tile, next, scratch);
}

void MergeOnTarget(const AttentionPart& from, int32_t head_dim,
                   const AttentionPart& into) {
  MergePart(from, head_dim, into);
}

void FinishOnTarget(const AttentionPart& part, int32_t head_dim, float* out) {
  const FloatTag d;
  const V total = hn::Set(d, *part.total);
  ForEachPiece(head_dim, [&](size_t i, size_t n) {
    // Sums that are 0 may differ in sign: a weight of 0 that is left out is not
    // quite the same as one that is not. Adding 0 takes the sign away.
    const V mean = hn::Div(LoadPart(part.sums + i, n), total);
    StorePart(hn::Add(mean, hn::Zero(d)), out + i, n);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace folio {
namespace {
HWY_EXPORT(AttendOnTarget);
HWY_EXPORT(MergeOnTarget);
HWY_EXPORT(FinishOnTarget);
}  // namespace

size_t AttentionScratchBytes(int32_t max_lines, int32_t head_dim) {
  return Scratch(nullptr, max_lines, head_dim).bytes;
}

void AttendTile(const AttentionTile& tile, const AttentionTile* next,
                std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(AttendOnTarget)(tile, next, scratch);
}

void MergeAttention(const AttentionPart& from, int32_t head_dim,
                    const AttentionPart& into) {
  HWY_DYNAMIC_DISPATCH(MergeOnTarget)(from, head_dim, into);
}

void FinishAttention(const AttentionPart& part, int32_t head_dim, float* out) {
  HWY_DYNAMIC_DISPATCH(FinishOnTarget)(part, head_dim, out);
}

}  // namespace folio
#endif  // HWY_ONCE
