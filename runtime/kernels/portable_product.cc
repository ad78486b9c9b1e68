#include "runtime/kernels/portable_product.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/portable_product.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/vectors-inl.h"

// Compiled once for each target; what does not depend on it, once.
#ifndef RUNTIME_KERNELS_PORTABLE_PRODUCT_CC_ONCE
#define RUNTIME_KERNELS_PORTABLE_PRODUCT_CC_ONCE
namespace folio {
namespace {
constexpr int32_t kPanelColumns = 32;
}  // namespace
}  // namespace folio
#endif

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kVectors = kPanelColumns / kLanes;
// As many rows at once as leave room in the registers.
constexpr int32_t kRowsAtOnce = kLanes == 16 ? 8 : kLanes == 8 ? 2 : 1;

// y[0 .. kRows)[kPanelColumns] of one panel, into rows of `out`.
template <int32_t kRows>
HWY_INLINE void PanelRows(const float* x, int32_t in, const float* panel,
                          const float* bias, float* out) {
  const FloatTag d;
  V sum[kRows][kVectors];
  for (int32_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  for (int32_t k = 0; k < in; ++k) {
    V w[kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
      w[v] = hn::Load(d, panel + size_t(k) * kPanelColumns + v * kLanes);
    }
    for (int32_t r = 0; r < kRows; ++r) {
      const V factor = hn::Set(d, x[size_t(r) * in + k]);
      for (size_t v = 0; v < kVectors; ++v) {
        sum[r][v] = hn::MulAdd(factor, w[v], sum[r][v]);
      }
    }
  }
  for (int32_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) {
      const V b = hn::Load(d, bias + v * kLanes);
      hn::Store(hn::Add(sum[r][v], b), d,
                out + size_t(r) * kPanelColumns + v * kLanes);
    }
  }
}

void MultiplyPanel(const float* x, int32_t rows, int32_t in, const float* panel,
                   const float* bias, float* y, int32_t cols, int32_t stride) {
  HWY_ALIGN float tile[kRowsAtOnce * kPanelColumns];
  for (int32_t r = 0; r < rows;) {
    const int32_t count = rows - r >= kRowsAtOnce ? kRowsAtOnce : 1;
    const float* source = x + size_t(r) * in;
    if (count == kRowsAtOnce) {
      PanelRows<kRowsAtOnce>(source, in, panel, bias, tile);
    } else {
      PanelRows<1>(source, in, panel, bias, tile);
    }
    for (int32_t i = 0; i < count; ++i) {
      std::copy_n(tile + size_t(i) * kPanelColumns, cols,
                  y + size_t(r + i) * stride);
    }
    r += count;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace folio {
namespace {
HWY_EXPORT(MultiplyPanel);

size_t NumPanels(int32_t out) {
  return static_cast<size_t>((out + kPanelColumns - 1) / kPanelColumns);
}
}  // namespace

PortableProduct::PortableProduct(std::span<const float> weight,
                                 std::span<const float> bias, int32_t in,
                                 int32_t out)
    : in_(in),
      out_(out),
      packed_(NumPanels(out) * in * kPanelColumns),
      bias_(NumPanels(out) * kPanelColumns) {
  for (int32_t c = 0; c < out; ++c) {
    const size_t panel = c / kPanelColumns;
    float* column =
        packed_.data() + panel * in * kPanelColumns + c % kPanelColumns;
    for (int32_t k = 0; k < in; ++k) {
      column[size_t(k) * kPanelColumns] = weight[size_t(c) * in + k];
    }
  }
  std::copy(bias.begin(), bias.end(), bias_.data());
}

void PortableProduct::Run(const float* x, int32_t rows, float* y) const {
  for (int32_t c = 0; c < out_; c += kPanelColumns) {
    HWY_DYNAMIC_DISPATCH(MultiplyPanel)
    (x, rows, in_, packed_.data() + size_t(c) * in_, bias_.data() + c, y + c,
     std::min(kPanelColumns, out_ - c), out_);
  }
}

}  // namespace folio
#endif  // HWY_ONCE
