#include "runtime/kernels/float_product.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

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
  ElementType type;
  const uint32_t* panel;  // [num_lines][kPanelColumns]
  int32_t num_lines;
  const float* bias;  // [kPanelColumns]
  const std::byte* x;
  size_t x_stride;  // In bytes.
  int32_t in;
  int32_t rows;
  float* y;
  size_t y_stride;
  int32_t cols;  // At most kPanelColumns: those that y has.
  std::span<const uint8_t> next;
};

// Elements of x that are brought into the form of the product at a time.
constexpr int32_t kChunk = 256;

// Lines after which the next panel is asked for.
constexpr int32_t kLinesAtOnce = 8;

}  // namespace
}  // namespace folio
#endif  // RUNTIME_KERNELS_FLOAT_PRODUCT_CC_ONCE

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {
namespace {

// Some elements of rows of x, `stride` apart.
template <typename Element>
struct Lefts {
  const Element* first;
  size_t stride;
};

// Elements [begin, begin + size) of kRows rows of x as P takes them: where they
// lie, or converted, with a 0 up to a whole dword, in `to`.
template <class P, typename T, int32_t kRows>
HWY_INLINE Lefts<typename P::Element> LeftsOf(const FloatPanel& p, int32_t row,
                                              int32_t begin, int32_t size,
                                              typename P::Element* to) {
  const T* const from = reinterpret_cast<const T*>(p.x + row * p.x_stride);
  const size_t stride = p.x_stride / sizeof(T);
  if constexpr (std::is_same_v<T, typename P::Element>) {
    return {from + begin, stride};
  } else {
    for (int32_t r = 0; r < kRows; ++r) {
      ForEachPiece(size, [&](size_t i, size_t n) {
        StorePart(LoadPart(from + r * stride + begin + i, n),
                  to + r * kChunk + i, n);
      });
      if (size % P::kElementsPerDword != 0) to[r * kChunk + size] = 0;
    }
    return {to, kChunk};
  }
}

// sum[kRows][kVectors] += rows of x times a part of line `line` of a panel.
template <class P, int32_t kPart, int32_t kRows, int32_t kVectors>
HWY_INLINE void AddPart(const Lefts<typename P::Element>& x,
                        const uint32_t* lines, size_t line,
                        V (&sum)[kRows][kVectors]) {
  decltype(P::template Load<kPart>(lines)) weights[kVectors];
#pragma GCC unroll 4
  for (int32_t v = 0; v < kVectors; ++v) {
    weights[v] =
        P::template Load<kPart>(lines + line * kPanelColumns + v * kLanes);
  }
#pragma GCC unroll 8
  for (int32_t r = 0; r < kRows; ++r) {
    const auto factor =
        P::template Broadcast<kPart>(x.first + r * x.stride, line);
#pragma GCC unroll 4
    for (int32_t v = 0; v < kVectors; ++v) {
      sum[r][v] = P::Add(factor, weights[v], sum[r][v]);
    }
  }
}

// Rows [row, row + kRows) times a panel.
template <class P, typename T, int32_t kRows>
HWY_NOINLINE void FloatRows(const FloatPanel& p, int32_t row, Ahead ahead) {
  constexpr int32_t kVectors = kVectorsAtOnce;
  constexpr int32_t kChunkLines = kChunk / P::kElementsPerDword;
  const FloatTag d;
  HWY_ALIGN typename P::Element staged[kRows * kChunk];
  Target<kRows> target(p.y + row * p.y_stride, p.y_stride, p.cols,
                       /*load=*/false);
  for (int32_t c = 0; c < p.cols; c += kVectors * kLanes) {
    V sum[kRows][kVectors];
#pragma GCC unroll 8
    for (int32_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int32_t v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
    }
    for (int32_t first = 0; first < p.num_lines; first += kChunkLines) {
      const int32_t lines = std::min(kChunkLines, p.num_lines - first);
      const int32_t begin = first * P::kElementsPerDword;
      const auto x = LeftsOf<P, T, kRows>(
          p, row, begin, std::min(kChunk, p.in - begin), staged);
      const uint32_t* const chunk = p.panel + size_t(first) * kPanelColumns + c;
      for (int32_t line = 0; line < lines; line += kLinesAtOnce) {
        ahead.Ask();
        const int32_t end = std::min(line + kLinesAtOnce, lines);
        for (int32_t i = line; i < end; ++i) {
          AddPart<P, 0>(x, chunk, i, sum);
          if constexpr (P::kParts == 2) AddPart<P, 1>(x, chunk, i, sum);
        }
      }
    }
#pragma GCC unroll 8
    for (int32_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int32_t v = 0; v < kVectors; ++v) {
        const int32_t column = c + v * kLanes;
        hn::StoreU(hn::Add(sum[r][v], hn::Load(d, p.bias + column)), d,
                   target.Row(r) + column);
      }
    }
  }
}

template <class P, typename T>
void Multiply(const FloatPanel& p) {
  const int32_t asks = NumPieces<kLinesAtOnce>(p.num_lines) *
                       NumPieces<kVectorsAtOnce * kLanes>(p.cols);
  InPieces<P::kLines>(p.rows, [&]<int32_t kRows>(int32_t row) {
    FloatRows<P, T, kRows>(
        p, row,
        Ahead(p.next, NumPieces<P::kLines>(p.rows), row / P::kLines, asks));
  });
}

void MultiplyPanel(const FloatPanel& p) {
  if (p.type == ElementType::kF32) return Multiply<FloatDots, float>(p);
#if HWY_TARGET == HWY_AVX3_DL
  if (HasBf16DotProducts()) return Multiply<DotPairs, uint16_t>(p);
#endif
  Multiply<FloatPairs, uint16_t>(p);
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
  ({.type = type_,
    .panel = reinterpret_cast<const uint32_t*>(Panel(panel).data()),
    .num_lines = NumLines(type_, in_),
    .bias = bias(panel),
    .x = x.row(first),
    .x_stride = x.row_bytes(),
    .in = in_,
    .rows = rows,
    .y = y + panel * kPanelColumns,
    .y_stride = size_t(out_),
    .cols = PanelCols(panel),
    .next = next});
}

}  // namespace folio
#endif  // HWY_ONCE
