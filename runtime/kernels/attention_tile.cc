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

// The most lanes of a vector, and lines of an inner loop.
constexpr size_t kMostLanes = 16;
constexpr size_t kMostLines = 6;
constexpr size_t kPositions = 64;  // Of a block.

// For so many lines numbers of bf16 or int8 become floats once, instead of
// being taken out of pairs each time.
constexpr int32_t kLeastWidenedLines = 12;

size_t RoundUp(size_t size, size_t step) {
  return (size + step - 1) / step * step;
}

// Of a Prefetcher: of K/V, and of the queries of a tile. The pages that a block
// lies in have at most three blocks' slots of keys, those of the smallest pages
// (8 slots) are nine, and a piece is three quarters of a dword of each position
// of a block, which are more than 32 floats.
size_t MostPieces(size_t lines, size_t head_dim) {
  return 6 * head_dim + 2 * 9 + lines * (head_dim / 32 + 1);
}

// A worker's memory, for `lines` query lines. Elements are those of the
// policy; every array begins on a cache line.
struct Scratch {
  Scratch(std::byte* memory, size_t lines, size_t head_dim) {
    const size_t dim = RoundUp(head_dim, kMostLanes);
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
    narrow_keys = dwords(dim / 2 * kPositions);
    key_scales = floats(kPositions);
    value_scales = floats(kPositions);
    zeros = take(dim);
    pieces = reinterpret_cast<const std::byte**>(
        take(MostPieces(lines, dim) * sizeof(const std::byte*)));
    bytes = next - memory;
  }

  std::byte* q;        // [lines][elements of a row]: rounded
  float* sums;         // [lines][padded dim]: weighted values of this span
  float* max;          // [lines]: the greatest score of this span
  float* partial;      // [lines][kLanes]: sums of weights of this span
  float* scores;       // [kLines][kBlock]
  std::byte* weights;  // [kLines][kBlock] elements
  uint32_t* keys;      // [dwords of a row][kBlock]: those not read in pages
  uint32_t* values;    // [rows of a block][padded dim]: those not read in pages
  uint32_t* narrow_keys;  // [head_dim / 2][kBlock]: those before widening
  float* key_scales;      // [kBlock]: what scores are multiplied by, of int8
  float* value_scales;    // [kBlock]: what weights are multiplied by, of int8
  std::byte* zeros;       // A row of int8 for positions that nobody sees.
  const std::byte** pieces;  // Those of a Prefetcher.
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
        dim_(RoundUp(tile.head_dim, kLanes)),
        stored_dwords_((tile.head_dim + kElementsPerDword - 1) /
                       kElementsPerDword),
        key_dwords_(stored_dwords_ * kElementsPerDword / P::kElementsPerDword),
        q_stride_(key_dwords_ * P::kElementsPerDword),
        s_(memory, num_lines_, tile.head_dim) {}

  void Run() {
    RoundQueries();
    std::fill_n(s_.zeros, dim_, std::byte{0});
    for (int32_t r = 0; r < tile_.num_rows; ++r) {
      std::fill_n(tile_.out.total + r * tile_.total_stride, tile_.group, 0.0f);
    }
    const int32_t end = std::min(tile_.first_position + tile_.num_rows,
                                 tile_.end_span * kAttentionSpan);
    int32_t start = FirstBlock(tile_);
    Prefetcher(tile_, start, s_.pieces).AskForRest();
    while (start < end) {
      StartSpan();
      start = AttendSpan(start, end);
      FinishSpan();
    }
  }

 private:
  using Element = typename P::Element;
  static constexpr int32_t kElementsPerDword = sizeof(uint32_t) / sizeof(T);
  // Whether there are fewer elements in a dword of P than in the pages.
  static constexpr bool kWidens = P::kElementsPerDword < kElementsPerDword;
  static constexpr bool kHasScales = std::is_same_v<T, int8_t>;

  struct Block {
    int32_t start;
    BlockKeys keys;
    BlockValues values;
  };

  // Where the first block of a tile begins.
  static int32_t FirstBlock(const AttentionTile& tile) {
    return std::max(FirstSeen(tile, tile.first_position),
                    tile.first_span * kAttentionSpan) /
           kBlock * kBlock;
  }

  // What queries are multiplied by. Scores are powers of 2, so that weights
  // need no other exponential.
  float ScoreFactor() const {
    return static_cast<float>(std::numbers::log2e /
                              std::sqrt(static_cast<double>(tile_.head_dim)));
  }
  Element* q(int32_t line) const {
    return reinterpret_cast<Element*>(s_.q) + line * q_stride_;
  }

  // (Whole vectors: what they write beyond a line is the next one's, and the
  // last one has room.)
  void RoundQueries() {
    const size_t dim = tile_.head_dim;
    const V factor = hn::Set(FloatTag(), ScoreFactor());
    for (int32_t line = 0; line < num_lines_; ++line) {
      const float* from = tile_.q +
                          size_t(line / tile_.group) * tile_.q_stride +
                          line % tile_.group * dim;
      ForEachPiece(dim, [&](size_t i, size_t n) {
        P::StoreElements(P::Round(hn::Mul(LoadPart(from + i, n), factor)),
                         q(line) + i);
      });
      std::fill(q(line) + dim, q(line) + q_stride_, Element{0});
    }
  }

  void StartSpan() {
    SetZero(s_.sums, num_lines_ * dim_);
    std::fill_n(s_.max, num_lines_, -std::numeric_limits<float>::infinity());
    SetZero(s_.partial, num_lines_ * kMostLanes);
  }

  void FinishSpan() {
    const FloatTag d;
    for (int32_t line = 0; line < num_lines_; ++line) {
      const size_t row = line / tile_.group;
      const size_t head = line % tile_.group;
      float total = hn::GetLane(
          hn::SumOfLanes(d, hn::Load(d, s_.partial + line * kMostLanes)));
      const size_t place = row * tile_.total_stride + head;
      MergePart(
          {s_.sums + line * dim_, s_.max + line, &total}, tile_.head_dim,
          {tile_.out.sums + row * tile_.sums_stride + head * tile_.head_dim,
           tile_.out.max + place, tile_.out.total + place});
    }
  }

  // From `start` to the end of its span, or `end`; returns where that is.
  int32_t AttendSpan(int32_t start, int32_t end) {
    do {
      const int32_t next = start + kBlock;
      if (next < end || next_ == nullptr) {
        AttendBlock(start, Prefetcher(tile_, next, s_.pieces));
      } else {
        Prefetcher prefetcher(*next_, FirstBlock(*next_), s_.pieces);
        prefetcher.AddQueries(*next_);
        AttendBlock(start, prefetcher);
      }
      start = next;
    } while (start < end && start % kAttentionSpan != 0);
    return start;
  }

  BlockKeys Keys(int32_t start, Range seen) const {
    const BlockKeys keys = FindKeys(tile_, start, seen, stored_dwords_,
                                    kWidens ? s_.narrow_keys : s_.keys);
    if constexpr (!kWidens) {
      return keys;
    } else {
      return WidenKeys<P, T>(keys, seen, stored_dwords_, s_.keys);
    }
  }

  BlockValues Values(int32_t start, Range seen) const {
    if constexpr (!kWidens) {
      return FindValues<T>(tile_, start, seen, dim_, s_.values);
    } else if constexpr (kHasScales) {
      return WidenBytes<P>(tile_, start, seen, dim_,
                           reinterpret_cast<const int8_t*>(s_.zeros),
                           s_.values);
    } else {
      return WidenPairs(tile_, start, seen, dim_, s_.values);
    }
  }

  void AttendBlock(int32_t start, Prefetcher prefetcher) {
    const Range seen = SeenByAny(tile_, start);
    if constexpr (kHasScales) {
      LoadScales(tile_, start, seen, s_.key_scales, s_.value_scales);
    }
    const Block block = {start, Keys(start, seen), Values(start, seen)};
    int32_t line = 0;
    for (; line + P::kLines <= num_lines_; line += P::kLines) {
      AttendLines<P::kLines>(block, line, prefetcher);
    }
    AttendLastLines<P::kLines - 1>(block, line, prefetcher);
    prefetcher.AskForRest();
  }

  // num_lines_ - line is at most kLines.
  template <int32_t kLines>
  void AttendLastLines(const Block& block, int32_t line,
                       Prefetcher& prefetcher) {
    if (num_lines_ - line == kLines) {
      AttendLines<kLines>(block, line, prefetcher);
    } else if constexpr (kLines > 1) {
      AttendLastLines<kLines - 1>(block, line, prefetcher);
    }
  }

  // The part of the block at `start` that a line sees.
  Range Seen(int32_t line, int32_t start) const {
    const int32_t position = tile_.first_position + line / tile_.group;
    return InBlock(FirstSeen(tile_, position), position + 1, start);
  }

  LineState State(int32_t line) const {
    return {s_.sums + line * dim_, s_.max + line,
            s_.partial + line * kMostLanes};
  }

  // One block for lines [line, line + kLines).
  template <int32_t kLines>
  HWY_NOINLINE void AttendLines(const Block& block, int32_t line,
                                Prefetcher& prefetcher) {
    const int32_t start = block.start;
    // Both ends of what a line sees ascend from line to line.
    const Range any = {Seen(line, start).begin,
                       Seen(line + kLines - 1, start).end};
    if (any.IsEmpty()) return;
    AddAllProducts<P, /*kFresh=*/true, kLines>(
        q(line), q_stride_, block.keys, any.begin / kGroup * kGroup,
        RoundUp(any.end, kGroup), 0, key_dwords_, s_.scores, kBlock,
        prefetcher);
    Element* const weights = reinterpret_cast<Element*>(s_.weights);
    // Line by line twice, so that nobody waits for a line's greatest score.
    float max[kLines];
    for (int32_t l = 0; l < kLines; ++l) {
      max[l] = GreatestScore<kHasScales>(s_.key_scales, Seen(line + l, start),
                                         State(line + l),
                                         s_.scores + l * kBlock, prefetcher);
    }
    for (int32_t l = 0; l < kLines; ++l) {
      if (Seen(line + l, start).IsEmpty()) {
        std::fill_n(weights + l * kBlock, kBlock, Element{0});
        continue;
      }
      Weigh<P, kHasScales>(s_.scores + l * kBlock, s_.value_scales, max[l],
                           dim_, State(line + l), weights + l * kBlock,
                           prefetcher);
    }
    // Weights of 0 change no sum, so that those of all lines may be left out.
    constexpr int32_t kStep = P::kElementsPerDword;
    AddAllProducts<P, /*kFresh=*/false, kLines>(
        weights, kBlock, block.values, 0, dim_, any.begin / kStep,
        (any.end + kStep - 1) / kStep, s_.sums + line * dim_, dim_, prefetcher);
  }

  const AttentionTile& tile_;
  const AttentionTile* const next_;
  const int32_t num_lines_;
  const size_t dim_;            // padded
  const size_t stored_dwords_;  // Of one key in its page.
  const size_t key_dwords_;     // Of one key as it is multiplied.
  const size_t q_stride_;       // In elements.
  const Scratch s_;
};

template <class P>
void AttendRounded(const AttentionTile& tile, const AttentionTile* next,
                   std::byte* scratch) {
  if (tile.kv.type == ElementType::kBf16) {
    TileKernel<P, uint16_t>(tile, next, scratch).Run();
  } else {
    TileKernel<P, int8_t>(tile, next, scratch).Run();
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
    AttendRounded<DotPairs>(tile, next, scratch);
    return;
  }
#endif
  if (tile.num_rows * tile.group < kLeastWidenedLines) {
    AttendRounded<FloatPairs>(tile, next, scratch);
  } else {
    AttendRounded<Bf16Floats>(tile, next, scratch);
  }
}

void MergeOnTarget(const AttentionPart& from, int32_t head_dim,
                   const AttentionPart& into) {
  MergePart(from, head_dim, into);
}

void FinishOnTarget(const AttentionPart& part, int32_t num_lines,
                    int32_t head_dim, float* out) {
  const FloatTag d;
  for (int32_t line = 0; line < num_lines; ++line) {
    const float* const sums = part.sums + size_t(line) * head_dim;
    float* const to = out + size_t(line) * head_dim;
    const V inverse = hn::Set(d, 1.0f / part.total[line]);
    ForEachPiece(head_dim, [&](size_t i, size_t n) {
      // Sums that are 0 may differ in sign: a weight of 0 that is left out is
      // not quite the same as one that is not. Adding 0 takes the sign away.
      const V mean = hn::Mul(LoadPart(sums + i, n), inverse);
      StorePart(hn::Add(mean, hn::Zero(d)), to + i, n);
    });
  }
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

void FinishAttention(const AttentionPart& part, int32_t num_lines,
                     int32_t head_dim, float* out) {
  HWY_DYNAMIC_DISPATCH(FinishOnTarget)(part, num_lines, head_dim, out);
}

}  // namespace folio
#endif  // HWY_ONCE
