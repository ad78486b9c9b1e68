#include "runtime/kernels/elementwise.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "hwy/contrib/math/math-inl.h"
#include "runtime/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE V Constant(float value) { return hn::Set(FloatTag(), value); }

// to[i] = f(from[i]).
template <typename T, typename F>
HWY_INLINE void MapRow(const float* from, size_t size, T* to, const F& f) {
  ForEachPiece(size, [&](size_t i, size_t n) {
    StorePart(f(LoadPart(from + i, n)), to + i, n);
  });
}

void AddRow(const float* y, size_t size, float* x) {
  ForEachPiece(size, [&](size_t i, size_t n) {
    StorePart(hn::Add(LoadPart(x + i, n), LoadPart(y + i, n)), x + i, n);
  });
}

template <typename T>
void LayerNormRow(const float* x, size_t size, const float* weight,
                  const float* bias, float epsilon, T* out) {
  const float mean = SumRow(x, size, [](V v) { return v; }) / size;
  const V mean_v = Constant(mean);
  const float variance = SumRow(x, size,
                                [&](V v) {
                                  const V centred = hn::Sub(v, mean_v);
                                  return hn::Mul(centred, centred);
                                }) /
                         size;
  const V scale = Constant(1.0f / std::sqrt(variance + epsilon));
  ForEachPiece(size, [&](size_t i, size_t n) {
    const V centred = hn::Sub(LoadPart(x + i, n), mean_v);
    StorePart(hn::MulAdd(hn::Mul(centred, scale), LoadPart(weight + i, n),
                         LoadPart(bias + i, n)),
              out + i, n);
  });
}
void LayerNormRowF32(const float* x, size_t size, const float* weight,
                     const float* bias, float epsilon, float* out) {
  LayerNormRow(x, size, weight, bias, epsilon, out);
}
void LayerNormRowBf16(const float* x, size_t size, const float* weight,
                      const float* bias, float epsilon, uint16_t* out) {
  LayerNormRow(x, size, weight, bias, epsilon, out);
}

template <typename T>
void RmsNormRow(const float* x, size_t size, const float* weight, float epsilon,
                T* out) {
  const V scale = Constant(RmsScale(x, size, epsilon));
  ForEachPiece(size, [&](size_t i, size_t n) {
    StorePart(
        hn::Mul(hn::Mul(LoadPart(x + i, n), scale), LoadPart(weight + i, n)),
        out + i, n);
  });
}
void RmsNormRowF32(const float* x, size_t size, const float* weight,
                   float epsilon, float* out) {
  RmsNormRow(x, size, weight, epsilon, out);
}
void RmsNormRowBf16(const float* x, size_t size, const float* weight,
                    float epsilon, uint16_t* out) {
  RmsNormRow(x, size, weight, epsilon, out);
}

// erf within 1.2e-7: N. Juffa's two polynomials (stackoverflow.com/a/35148199),
// one for small arguments, one for log(1 - erf) beyond.
HWY_INLINE V Erf(V a) {
  const FloatTag d;
  const V t = hn::Abs(a);
  const V s = hn::Mul(a, a);

  V r = hn::MulAdd(Constant(-1.72853470e-5f), t, Constant(3.83197126e-4f));
  const V u =
      hn::MulAdd(Constant(-3.88396438e-3f), t, Constant(2.42546219e-2f));
  r = hn::MulAdd(r, s, u);
  r = hn::MulAdd(r, t, Constant(-1.06777877e-1f));
  r = hn::MulAdd(r, t, Constant(-6.34846687e-1f));
  r = hn::MulAdd(r, t, Constant(-1.28717512e-1f));
  r = hn::MulAdd(r, t, hn::Neg(t));
  const V far = hn::CopySignToAbs(hn::Sub(Constant(1.0f), hn::Exp(d, r)), a);

  V p = hn::MulAdd(Constant(-5.96761703e-4f), s, Constant(4.99119423e-3f));
  p = hn::MulAdd(p, s, Constant(-2.67681349e-2f));
  p = hn::MulAdd(p, s, Constant(1.12819925e-1f));
  p = hn::MulAdd(p, s, Constant(-3.76125336e-1f));
  p = hn::MulAdd(p, s, Constant(1.28379166e-1f));
  const V near = hn::MulAdd(p, a, a);

  return hn::IfThenElse(hn::Gt(t, Constant(0.927734375f)), far, near);
}

// x / (1 + exp(-z)), by exp(-|z|), which can't overflow.
HWY_INLINE V TimesSigmoid(V x, V z) {
  const V e = hn::Exp(FloatTag(), hn::Neg(hn::Abs(z)));
  const V one = Constant(1.0f);
  const V numerator = hn::IfThenElse(hn::Lt(z, hn::Zero(FloatTag())), e, one);
  return hn::Mul(x, hn::Div(numerator, hn::Add(one, e)));
}

template <typename T>
void GeluErfRow(const float* y, size_t size, T* out) {
  MapRow(y, size, out, [](V v) {
    const V erf = Erf(hn::Mul(v, Constant(0.70710678118654752f)));
    const V half = hn::Mul(v, Constant(0.5f));
    return hn::MulAdd(half, erf, half);
  });
}
void GeluErfRowF32(const float* y, size_t size, float* out) {
  GeluErfRow(y, size, out);
}
void GeluErfRowBf16(const float* y, size_t size, uint16_t* out) {
  GeluErfRow(y, size, out);
}

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)).
template <typename T>
void GeluTanhRow(const float* y, size_t size, T* out) {
  constexpr float kTwoRoot2OverPi = 1.5957691216057308f;
  MapRow(y, size, out, [](V v) {
    const V square = hn::Mul(v, v);
    const V inner = hn::MulAdd(hn::Mul(square, v), Constant(0.044715f), v);
    return TimesSigmoid(v, hn::Mul(inner, Constant(kTwoRoot2OverPi)));
  });
}
void GeluTanhRowF32(const float* y, size_t size, float* out) {
  GeluTanhRow(y, size, out);
}
void GeluTanhRowBf16(const float* y, size_t size, uint16_t* out) {
  GeluTanhRow(y, size, out);
}

template <typename T>
void SwiGluRow(const float* gate, const float* up, size_t size, T* out) {
  ForEachPiece(size, [&](size_t i, size_t n) {
    const V g = LoadPart(gate + i, n);
    StorePart(hn::Mul(TimesSigmoid(g, g), LoadPart(up + i, n)), out + i, n);
  });
}
void SwiGluRowF32(const float* gate, const float* up, size_t size, float* out) {
  SwiGluRow(gate, up, size, out);
}
void SwiGluRowBf16(const float* gate, const float* up, size_t size,
                   uint16_t* out) {
  SwiGluRow(gate, up, size, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace folio {
namespace {

HWY_EXPORT(AddRow);
HWY_EXPORT(LayerNormRowF32);
HWY_EXPORT(LayerNormRowBf16);
HWY_EXPORT(RmsNormRowF32);
HWY_EXPORT(RmsNormRowBf16);
HWY_EXPORT(GeluErfRowF32);
HWY_EXPORT(GeluErfRowBf16);
HWY_EXPORT(GeluTanhRowF32);
HWY_EXPORT(GeluTanhRowBf16);
HWY_EXPORT(SwiGluRowF32);
HWY_EXPORT(SwiGluRowBf16);

// Calls body(row) for each row, split over the workers.
template <typename Body>
void ForEachRow(int32_t rows, Executor& executor, const Body& body) {
  ParallelRows(executor, rows, [&](int32_t first, int32_t count) {
    for (int32_t row = first; row < first + count; ++row) body(row);
  });
}

// Calls the kernel of the type of `out`: kernel(arguments..., out's row).
template <typename F32Kernel, typename Bf16Kernel>
auto ToRowOf(Activations& out, F32Kernel f32, Bf16Kernel bf16) {
  return
      [&out, f32, bf16](int32_t row, int32_t column, const auto&... arguments) {
        if (out.type() == ElementType::kF32) {
          f32(arguments..., out.RowAs<float>(row) + column);
        } else {
          bf16(arguments..., out.RowAs<uint16_t>(row) + column);
        }
      };
}

// kernel(row, column, a block's part of the row, its size).
template <typename Kernel>
void MapBlocks(const ColumnBlocks& y, int32_t rows, const Activations& out,
               Executor& executor, const Kernel& kernel) {
  CHECK_LE(rows, y.max_rows());
  CHECK_LE(rows, out.max_rows());
  CHECK_EQ(y.cols(), out.cols());
  ForEachRow(rows, executor, [&](int32_t row) {
    for (int32_t b = 0; b < y.num_blocks(); ++b) {
      const std::span<const float> part = y.Row(b, row);
      kernel(row, y.first_column(b), part.data(), part.size());
    }
  });
}

void CheckNorm(std::span<const float> x, int32_t rows, size_t cols,
               const Activations& out) {
  CHECK_GE(x.size(), rows * cols);
  CHECK_LE(rows, out.max_rows());
  CHECK_EQ(static_cast<size_t>(out.cols()), cols);
}

}  // namespace

void AddColumnBlocks(const ColumnBlocks& y, int32_t rows, std::span<float> x,
                     Executor& executor) {
  const size_t cols = y.cols();
  CHECK_LE(rows, y.max_rows());
  CHECK_GE(x.size(), rows * cols);
  ForEachRow(rows, executor, [&](int32_t row) {
    for (int32_t b = 0; b < y.num_blocks(); ++b) {
      const std::span<const float> part = y.Row(b, row);
      HWY_DYNAMIC_DISPATCH(AddRow)
      (part.data(), part.size(), x.data() + row * cols + y.first_column(b));
    }
  });
}

void LayerNorm(std::span<const float> x, int32_t rows,
               std::span<const float> weight, std::span<const float> bias,
               float epsilon, Activations& out, Executor& executor) {
  const size_t cols = weight.size();
  CHECK_EQ(bias.size(), cols);
  CheckNorm(x, rows, cols, out);
  const auto kernel = ToRowOf(out, HWY_DYNAMIC_DISPATCH(LayerNormRowF32),
                              HWY_DYNAMIC_DISPATCH(LayerNormRowBf16));
  ForEachRow(rows, executor, [&](int32_t row) {
    kernel(row, 0, x.data() + row * cols, cols, weight.data(), bias.data(),
           epsilon);
  });
}

void RmsNorm(std::span<const float> x, int32_t rows,
             std::span<const float> weight, float epsilon, Activations& out,
             Executor& executor) {
  const size_t cols = weight.size();
  CheckNorm(x, rows, cols, out);
  const auto kernel = ToRowOf(out, HWY_DYNAMIC_DISPATCH(RmsNormRowF32),
                              HWY_DYNAMIC_DISPATCH(RmsNormRowBf16));
  ForEachRow(rows, executor, [&](int32_t row) {
    kernel(row, 0, x.data() + row * cols, cols, weight.data(), epsilon);
  });
}

void GeluErf(const ColumnBlocks& y, int32_t rows, Activations& out,
             Executor& executor) {
  MapBlocks(y, rows, out, executor,
            ToRowOf(out, HWY_DYNAMIC_DISPATCH(GeluErfRowF32),
                    HWY_DYNAMIC_DISPATCH(GeluErfRowBf16)));
}

void GeluTanh(const ColumnBlocks& y, int32_t rows, Activations& out,
              Executor& executor) {
  MapBlocks(y, rows, out, executor,
            ToRowOf(out, HWY_DYNAMIC_DISPATCH(GeluTanhRowF32),
                    HWY_DYNAMIC_DISPATCH(GeluTanhRowBf16)));
}

void SwiGlu(const ColumnBlocks& y, int32_t rows, Activations& out,
            Executor& executor) {
  const int32_t cols = out.cols();
  CHECK_LE(rows, y.max_rows());
  CHECK_LE(rows, out.max_rows());
  CHECK_EQ(y.cols(), 2 * cols);
  const auto kernel = ToRowOf(out, HWY_DYNAMIC_DISPATCH(SwiGluRowF32),
                              HWY_DYNAMIC_DISPATCH(SwiGluRowBf16));
  ForEachRow(rows, executor, [&](int32_t row) {
    // Pieces in which neither gate nor up crosses a cut.
    for (int32_t column = 0; column < cols;) {
      const std::span<const float> gate = y.RowFrom(row, column);
      const std::span<const float> up = y.RowFrom(row, cols + column);
      const size_t size =
          std::min({gate.size(), up.size(), size_t(cols - column)});
      kernel(row, column, gate.data(), up.data(), size);
      column += static_cast<int32_t>(size);
    }
  });
}

}  // namespace folio
#endif  // HWY_ONCE
