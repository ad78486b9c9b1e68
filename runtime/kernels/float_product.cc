#include "runtime/kernels/float_product.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>

#include "runtime/kernels/bf16.h"
#include "runtime/kernels/instruction_set.h"
#include "runtime/kernels/panel.h"

// The target with dot products of bf16, which Highway leaves out unless asked.
#define HWY_WANT_AVX3_DL 1
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/float_product.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/dot_policies-inl.h"
#include "runtime/kernels/panel-inl.h"

// Compiled once for each target; what does not depend on it, once.
#ifndef RUNTIME_KERNELS_FLOAT_PRODUCT_CC_ONCE
#define RUNTIME_KERNELS_FLOAT_PRODUCT_CC_ONCE
namespace folio {
namespace {

struct FloatPanel {
  bool has_pairs;         // Of bf16, instead of floats.
  const uint32_t* panel;  // [num_lines][kPanelColumns]
  int32_t num_lines;
  const float* bias;   // [kPanelColumns]
  const std::byte* x;  // Of the first row.
  bool x_is_floats;
  size_t x_stride;  // In bytes.
  int32_t rows;
  float* y;
  size_t y_stride;
  int32_t cols;  // At most kPanelColumns: those that y has.
  std::span<const uint8_t> next;
};

// Lines [first, first + count) of a panel, and where they begin, spread out or
// as they are.
struct Lines {
  int32_t first;
  int32_t count;
  const uint32_t* data;
  std::span<const uint8_t> next;  // What is multiplied after them.
};

// The most lines of pairs that are spread out at a time: 32 KiB of floats. More
// fall out of the nearer caches, with fewer y is written more often.
constexpr int32_t kMostSpreadLines = 64;

// For fewer rows that costs more than it saves.
constexpr int32_t kLeastSpreadRows = 16;

// Lines after which the next ones are asked for.
constexpr int32_t kLinesAtOnce = 8;

}  // namespace
}  // namespace folio
#endif  // RUNTIME_KERNELS_FLOAT_PRODUCT_CC_ONCE

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {
namespace {

// sum[kRows][kVectors] += rows of x, `stride` elements apart, times a part of
// line `line`, of which `loaded(weights, v)` is told.
template <class P, int32_t kPart, int32_t kRows, int32_t kVectors,
          typename Loaded>
HWY_INLINE void AddPart(const typename P::Element* x, size_t stride,
                        const uint32_t* lines, size_t line,
                        V (&sum)[kRows][kVectors], const Loaded& loaded) {
  decltype(P::template Load<kPart>(lines)) weights[kVectors];
#pragma GCC unroll 4
  for (int32_t v = 0; v < kVectors; ++v) {
    weights[v] =
        P::template Load<kPart>(lines + line * kPanelColumns + v * kLanes);
    loaded(weights[v], v);
  }
#pragma GCC unroll 8
  for (int32_t r = 0; r < kRows; ++r) {
    const auto factor = P::template Broadcast<kPart>(x + r * stride, line);
#pragma GCC unroll 4
    for (int32_t v = 0; v < kVectors; ++v) {
      sum[r][v] = P::Add(factor, weights[v], sum[r][v]);
    }
  }
}

// Rows [row, row + kRows) times some lines of a panel of `num_lines`; y holds
// the sum over the lines before them. With kSpread, each part of a line becomes
// a line of `spread`.
template <class P, bool kSpread, int32_t kRows>
HWY_NOINLINE void FloatRows(const FloatPanel& p, int32_t num_lines,
                            const Lines& lines, int32_t row, Ahead ahead,
                            float* spread) {
  constexpr int32_t kVectors = kVectorsAtOnce;
  const FloatTag d;
  const bool is_first = lines.first == 0;
  const bool is_last = lines.first + lines.count == num_lines;
  const size_t stride = p.x_stride / sizeof(typename P::Element);
  const auto* const x =
      reinterpret_cast<const typename P::Element*>(p.x + row * p.x_stride) +
      size_t(lines.first) * P::kElementsPerDword;
  Target<kRows> target(p.y + row * p.y_stride, p.y_stride, p.cols,
                       /*load=*/!is_first);
  for (int32_t c = 0; c < p.cols; c += kVectors * kLanes) {
    V sum[kRows][kVectors];
#pragma GCC unroll 8
    for (int32_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int32_t v = 0; v < kVectors; ++v) {
        sum[r][v] = is_first ? hn::Zero(d)
                             : hn::LoadU(d, target.Row(r) + c + v * kLanes);
      }
    }
    for (int32_t line = 0; line < lines.count; line += kLinesAtOnce) {
      ahead.Ask();
      const int32_t end = std::min(line + kLinesAtOnce, lines.count);
      for (int32_t i = line; i < end; ++i) {
        const auto add_part = [&]<int32_t kPart>() HWY_ATTR {
          AddPart<P, kPart>(
              x, stride, lines.data + c, i, sum,
              [&](auto weights, int32_t v) HWY_ATTR {
                if constexpr (kSpread) {
                  hn::Store(weights, d,
                            spread +
                                size_t(i * P::kParts + kPart) * kPanelColumns +
                                c + v * kLanes);
                }
              });
        };
        add_part.template operator()<0>();
        if constexpr (P::kParts == 2) add_part.template operator()<1>();
      }
    }
#pragma GCC unroll 8
    for (int32_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int32_t v = 0; v < kVectors; ++v) {
        const int32_t column = c + v * kLanes;
        const V result = is_last
                             ? hn::Add(sum[r][v], hn::Load(d, p.bias + column))
                             : sum[r][v];
        hn::StoreU(result, d, target.Row(r) + column);
      }
    }
  }
}

// Rows from `first_row` on.
template <class P>
void Multiply(const FloatPanel& p, int32_t num_lines, const Lines& lines,
              int32_t first_row) {
  const int32_t asks = NumPieces<kLinesAtOnce>(lines.count) *
                       NumPieces<kVectorsAtOnce * kLanes>(p.cols);
  const int32_t rows = p.rows - first_row;
  InPieces<P::kLines>(rows, [&]<int32_t kRows>(int32_t row) {
    FloatRows<P, /*kSpread=*/false, kRows>(
        p, num_lines, lines, first_row + row,
        Ahead(lines.next, NumPieces<P::kLines>(rows), row / P::kLines, asks),
        nullptr);
  });
}

template <class P>
void MultiplyAll(const FloatPanel& p) {
  Multiply<P>(p, p.num_lines, {0, p.num_lines, p.panel, p.next}, 0);
}

// The `count` lines from `first` on, as far as there are; after the last, the
// first ones of the next panel.
std::span<const uint8_t> AfterLines(const FloatPanel& p, int32_t first,
                                    int32_t count) {
  constexpr size_t kBytes = kPanelColumns * sizeof(uint32_t);
  const auto rest = first == p.num_lines
                        ? p.next
                        : std::span(reinterpret_cast<const uint8_t*>(p.panel),
                                    p.num_lines * kBytes)
                              .subspan(first * kBytes);
  return rest.first(std::min(rest.size(), count * kBytes));
}

// Pairs as floats: the first rows take them apart for the others.
void MultiplySpread(const FloatPanel& p) {
  HWY_ALIGN float spread[kMostSpreadLines * 2 * kPanelColumns];
  const int32_t chunks = NumPieces<kMostSpreadLines>(p.num_lines);
  const int32_t most = (p.num_lines + chunks - 1) / chunks;
  for (int32_t first = 0; first < p.num_lines; first += most) {
    const int32_t count = std::min(most, p.num_lines - first);
    FloatRows<FloatPairs, /*kSpread=*/true, FloatPairs::kLines>(
        p, p.num_lines,
        {first, count, p.panel + size_t(first) * kPanelColumns, {}}, 0,
        Ahead({}, 1, 0, 1), spread);
    Multiply<FloatDots>(
        p, 2 * p.num_lines,
        {2 * first, 2 * count, reinterpret_cast<const uint32_t*>(spread),
         AfterLines(p, first + count, most)},
        FloatPairs::kLines);
  }
}

void MultiplyPanel(const FloatPanel& p) {
  if (!p.has_pairs) return MultiplyAll<FloatDots>(p);
#if HWY_TARGET == HWY_AVX3_DL
  if (!p.x_is_floats) return MultiplyAll<DotPairs>(p);
#endif
  CHECK(p.x_is_floats);
  if (p.rows < kLeastSpreadRows) return MultiplyAll<FloatPairs>(p);
  MultiplySpread(p);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace folio {
namespace {

HWY_EXPORT(MultiplyPanel);

// Dwords of a column.
int32_t NumLines(ElementType type, int32_t in) {
  return type == ElementType::kF32 ? in : (in + 1) / 2;
}

}  // namespace

FloatProduct::FloatProduct(ElementType type, int32_t in, int32_t out)
    : PanelProduct(
          in, out,
          size_t(NumLines(type, in)) * kPanelColumns * sizeof(uint32_t)),
      type_(type) {
  CHECK(!IsInteger(type));
}

void FloatProduct::PackRows(int32_t first, std::span<const float> rows) {
  const int32_t count = static_cast<int32_t>(rows.size() / in_);
  for (int32_t r = 0; r < count; ++r) {
    const std::span<const float> row = rows.subspan(size_t(r) * in_, in_);
    const int32_t column = first + r;
    uint32_t* place =
        reinterpret_cast<uint32_t*>(MutablePanel(column / kPanelColumns)) +
        column % kPanelColumns;
    if (type_ == ElementType::kF32) {
      for (const float w : row) {
        *place = std::bit_cast<uint32_t>(w);
        place += kPanelColumns;
      }
      continue;
    }
    for (int32_t k = 0; k < in_; k += 2, place += kPanelColumns) {
      const uint32_t second = k + 1 < in_ ? ToBf16(row[k + 1]) : 0;
      *place = ToBf16(row[k]) | second << 16;
    }
  }
}

void FloatProduct::RunPanel(const Activations& x, int32_t first, int32_t rows,
                            int32_t panel, std::span<const uint8_t> next,
                            float* y) const {
  CHECK(x.type() == type_);
  HWY_DYNAMIC_DISPATCH(MultiplyPanel)
  ({.has_pairs = type_ == ElementType::kBf16,
    .panel = reinterpret_cast<const uint32_t*>(Panel(panel).data()),
    .num_lines = NumLines(type_, in_),
    .bias = bias(panel),
    .x = x.row(first),
    .x_is_floats = x.rows_are_floats(),
    .x_stride = x.row_bytes(),
    .rows = rows,
    .y = y + panel * kPanelColumns,
    .y_stride = size_t(out_),
    .cols = PanelCols(panel),
    .next = next});
}

}  // namespace folio
#endif  // HWY_ONCE
