#include "runtime/kernels/portable_product.h"

#include <algorithm>
#include <type_traits>

#include "runtime/kernels/bf16.h"

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

HWY_INLINE float Widen(float value) { return value; }
HWY_INLINE float Widen(uint16_t bits) { return FromBf16(bits); }

// y[0 .. kRows)[kPanelColumns] of one panel, into rows of `out`.
template <int32_t kRows, typename T>
HWY_INLINE void PanelRows(const T* x, int32_t in, const T* panel,
                          const float* bias, float* out) {
  const FloatTag d;
  V sum[kRows][kVectors];
  for (int32_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  for (int32_t k = 0; k < in; ++k) {
    V w[kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
      w[v] = LoadElements(panel + size_t(k) * kPanelColumns + v * kLanes);
    }
    for (int32_t r = 0; r < kRows; ++r) {
      const V factor = hn::Set(d, Widen(x[size_t(r) * in + k]));
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

template <typename T>
HWY_INLINE void MultiplyPanel(const T* x, int32_t rows, int32_t in,
                              const T* panel, const float* bias, float* y,
                              int32_t cols, int32_t stride) {
  HWY_ALIGN float tile[kRowsAtOnce * kPanelColumns];
  for (int32_t r = 0; r < rows;) {
    const int32_t count = rows - r >= kRowsAtOnce ? kRowsAtOnce : 1;
    const T* source = x + size_t(r) * in;
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

void MultiplyPanelF32(const float* x, int32_t rows, int32_t in,
                      const float* panel, const float* bias, float* y,
                      int32_t cols, int32_t stride) {
  MultiplyPanel(x, rows, in, panel, bias, y, cols, stride);
}
void MultiplyPanelBf16(const uint16_t* x, int32_t rows, int32_t in,
                       const uint16_t* panel, const float* bias, float* y,
                       int32_t cols, int32_t stride) {
  MultiplyPanel(x, rows, in, panel, bias, y, cols, stride);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace folio {
namespace {
HWY_EXPORT(MultiplyPanelF32);
HWY_EXPORT(MultiplyPanelBf16);

size_t NumPanels(int32_t out) {
  return static_cast<size_t>((out + kPanelColumns - 1) / kPanelColumns);
}

// Where the element of `column` and k = 0 is, in elements; the next k is
// kPanelColumns further.
size_t PlaceOf(int32_t column, int32_t in) {
  const size_t panel = column / kPanelColumns;
  return panel * in * kPanelColumns + column % kPanelColumns;
}

template <typename T, typename Round>
void PackColumn(std::span<const float> row, T* place, const Round& round) {
  for (const float value : row) {
    *place = round(value);
    place += kPanelColumns;
  }
}

}  // namespace

PortableProduct::PortableProduct(ElementType type, int32_t in, int32_t out)
    : type_(type),
      in_(in),
      out_(out),
      packed_(NumPanels(out) * in * kPanelColumns * BytesOf(type)),
      bias_(NumPanels(out) * kPanelColumns) {}

void PortableProduct::PackRows(int32_t first, std::span<const float> rows) {
  const int32_t count = static_cast<int32_t>(rows.size() / in_);
  for (int32_t r = 0; r < count; ++r) {
    const std::span<const float> row = rows.subspan(size_t(r) * in_, in_);
    const size_t place = PlaceOf(first + r, in_);
    if (type_ == ElementType::kF32) {
      PackColumn(row, reinterpret_cast<float*>(packed_.data()) + place,
                 [](float value) { return value; });
    } else {
      PackColumn(row, reinterpret_cast<uint16_t*>(packed_.data()) + place,
                 ToBf16);
    }
  }
}

void PortableProduct::SetBias(std::span<const float> bias) {
  std::copy(bias.begin(), bias.end(), bias_.data());
}

int64_t PortableProduct::bytes() const {
  return static_cast<int64_t>(packed_.size() + bias_.size() * sizeof(float));
}

void PortableProduct::Run(const std::byte* x, int32_t rows, float* y) const {
  const auto run = [&](const auto* elements, auto kernel) {
    using T = std::remove_cvref_t<decltype(*elements)>;
    const T* packed = reinterpret_cast<const T*>(packed_.data());
    for (int32_t c = 0; c < out_; c += kPanelColumns) {
      kernel(elements, rows, in_, packed + PlaceOf(c, in_), bias_.data() + c,
             y + c, std::min(kPanelColumns, out_ - c), out_);
    }
  };
  if (type_ == ElementType::kF32) {
    run(reinterpret_cast<const float*>(x),
        HWY_DYNAMIC_DISPATCH(MultiplyPanelF32));
  } else {
    run(reinterpret_cast<const uint16_t*>(x),
        HWY_DYNAMIC_DISPATCH(MultiplyPanelBf16));
  }
}

}  // namespace folio
#endif  // HWY_ONCE
