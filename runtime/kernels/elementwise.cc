#include "runtime/kernels/elementwise.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE V Constant(float value) { return hn::Set(FloatTag(), value); }

// to[i] = f(from[i]).
template <typename F>
HWY_INLINE void MapRow(const float* from, size_t size, float* to, const F& f) {
  ForEachPiece(size, [&](size_t i, size_t n) {
    StorePart(f(LoadPart(from + i, n)), to + i, n);
  });
}

void AddRow(const float* y, size_t size, float* x) {
  ForEachPiece(size, [&](size_t i, size_t n) {
    StorePart(hn::Add(LoadPart(x + i, n), LoadPart(y + i, n)), x + i, n);
  });
}

void LayerNormRow(const float* x, size_t size, const float* weight,
                  const float* bias, float epsilon, float* out) {
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

void RmsNormRow(const float* x, size_t size, const float* weight, float epsilon,
                float* out) {
  const V scale = Constant(RmsScale(x, size, epsilon));
  ForEachPiece(size, [&](size_t i, size_t n) {
    StorePart(
        hn::Mul(hn::Mul(LoadPart(x + i, n), scale), LoadPart(weight + i, n)),
        out + i, n);
  });
}

// erf within 1.2e-7: N. Juffa's two polynomials (stackoverflow.com/a/35148199),
// one for small arguments, one for log(1 - erf) beyond.
HWY_INLINE V Erf(V a) {
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
  const V far =
      hn::CopySignToAbs(hn::Sub(Constant(1.0f), ExpNotPositive(r)), a);

  V p = hn::MulAdd(Constant(-5.96761703e-4f), s, Constant(4.99119423e-3f));
  p = hn::MulAdd(p, s, Constant(-2.67681349e-2f));
  p = hn::MulAdd(p, s, Constant(1.12819925e-1f));
  p = hn::MulAdd(p, s, Constant(-3.76125336e-1f));
  p = hn::MulAdd(p, s, Constant(1.28379166e-1f));
  const V near = hn::MulAdd(p, a, a);

  return hn::IfThenElse(hn::Gt(t, Constant(0.927734375f)), far, near);
}

// 1 / x within 2 ulp, for x from 1 to 2.
HWY_INLINE V Reciprocal(V x) {
#if HWY_TARGET <= HWY_AVX3 && HWY_TARGET != HWY_SCALAR
  // Newton's step doubles the 14 bits that are right, in a third of the time of
  // a division.
  const V near = hn::ApproximateReciprocal(x);
  return hn::Mul(near, hn::NegMulAdd(x, near, Constant(2.0f)));
#else
  return hn::Div(Constant(1.0f), x);
#endif
}

// x / (1 + exp(-z)), by exp(-|z|), which can't overflow.
HWY_INLINE V TimesSigmoid(V x, V z) {
  const V e = ExpNotPositive(hn::Neg(hn::Abs(z)));
  const V one = Constant(1.0f);
  const V numerator = hn::IfThenElse(hn::Lt(z, hn::Zero(FloatTag())), e, one);
  return hn::Mul(hn::Mul(x, numerator), Reciprocal(hn::Add(one, e)));
}

void GeluErfRow(const float* y, size_t size, float* out) {
  MapRow(y, size, out, [](V v) {
    const V erf = Erf(hn::Mul(v, Constant(0.70710678118654752f)));
    const V half = hn::Mul(v, Constant(0.5f));
    return hn::MulAdd(half, erf, half);
  });
}

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)).
void GeluTanhRow(const float* y, size_t size, float* out) {
  constexpr float kTwoRoot2OverPi = 1.5957691216057308f;
  MapRow(y, size, out, [](V v) {
    const V square = hn::Mul(v, v);
    const V inner = hn::MulAdd(hn::Mul(square, v), Constant(0.044715f), v);
    return TimesSigmoid(v, hn::Mul(inner, Constant(kTwoRoot2OverPi)));
  });
}

void SwiGluRow(const float* gate, const float* up, size_t size, float* out) {
  ForEachPiece(size, [&](size_t i, size_t n) {
    const V g = LoadPart(gate + i, n);
    StorePart(hn::Mul(TimesSigmoid(g, g), LoadPart(up + i, n)), out + i, n);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace folio {
namespace {

HWY_EXPORT(AddRow);
HWY_EXPORT(LayerNormRow);
HWY_EXPORT(RmsNormRow);
HWY_EXPORT(GeluErfRow);
HWY_EXPORT(GeluTanhRow);
HWY_EXPORT(SwiGluRow);

// Calls write(row, where to write it) for each row, split over the workers.
template <typename Write>
void WriteRows(Rows rows, Activations& out, Executor& executor,
               const Write& write) {
  CHECK_LE(rows.end(), out.max_rows());
  ParallelRows(executor, rows, [&](Rows some, int worker) {
    for (int32_t row = some.first; row < some.end(); ++row) {
      write(row, out.BeginRow(row, worker));
      out.EndRow(row, worker);
    }
  });
}

// kernel(a block's part of the row, its size, where its result goes).
template <typename Kernel>
void MapBlocks(const ColumnBlocks& y, Rows rows, Activations& out,
               Executor& executor, const Kernel& kernel) {
  CHECK_LE(rows.count, y.max_rows());
  CHECK_EQ(y.cols(), out.cols());
  WriteRows(rows, out, executor, [&](int32_t row, float* to) {
    for (int32_t b = 0; b < y.num_blocks(); ++b) {
      const std::span<const float> part = y.Row(b, row - rows.first);
      kernel(part.data(), part.size(), to + y.first_column(b));
    }
  });
}

void CheckSum(const ColumnBlocks& y, Rows rows, std::span<const float> x) {
  CHECK_LE(rows.count, y.max_rows());
  CHECK_GE(x.size(), size_t(rows.end()) * y.cols());
}

// x += row `row` of y.
void AddBlocks(const ColumnBlocks& y, int32_t row, float* x) {
  for (int32_t b = 0; b < y.num_blocks(); ++b) {
    const std::span<const float> part = y.Row(b, row);
    HWY_DYNAMIC_DISPATCH(AddRow)
    (part.data(), part.size(), x + y.first_column(b));
  }
}

void CheckNorm(std::span<const float> x, Rows rows, size_t cols,
               const Activations& out) {
  CHECK_GE(x.size(), rows.end() * cols);
  CHECK_EQ(static_cast<size_t>(out.cols()), cols);
}

}  // namespace

void AddColumnBlocks(const ColumnBlocks& y, Rows rows, std::span<float> x,
                     Executor& executor) {
  CheckSum(y, rows, x);
  ParallelRows(executor, rows, [&](Rows some, int /*worker*/) {
    for (int32_t row = some.first; row < some.end(); ++row) {
      AddBlocks(y, row - rows.first, x.data() + size_t(row) * y.cols());
    }
  });
}

void LayerNorm(std::span<const float> x, Rows rows,
               std::span<const float> weight, std::span<const float> bias,
               float epsilon, Activations& out, Executor& executor) {
  const size_t cols = weight.size();
  CHECK_EQ(bias.size(), cols);
  CheckNorm(x, rows, cols, out);
  WriteRows(rows, out, executor, [&](int32_t row, float* to) {
    HWY_DYNAMIC_DISPATCH(LayerNormRow)
    (x.data() + row * cols, cols, weight.data(), bias.data(), epsilon, to);
  });
}

void RmsNorm(std::span<const float> x, Rows rows, std::span<const float> weight,
             float epsilon, Activations& out, Executor& executor) {
  const size_t cols = weight.size();
  CheckNorm(x, rows, cols, out);
  WriteRows(rows, out, executor, [&](int32_t row, float* to) {
    HWY_DYNAMIC_DISPATCH(RmsNormRow)
    (x.data() + row * cols, cols, weight.data(), epsilon, to);
  });
}

void AddAndLayerNorm(const ColumnBlocks& y, Rows rows, std::span<float> x,
                     std::span<const float> weight, std::span<const float> bias,
                     float epsilon, Activations& out, Executor& executor) {
  const size_t cols = weight.size();
  CheckSum(y, rows, x);
  CHECK_EQ(bias.size(), cols);
  CheckNorm(x, rows, cols, out);
  WriteRows(rows, out, executor, [&](int32_t row, float* to) {
    AddBlocks(y, row - rows.first, x.data() + row * cols);
    HWY_DYNAMIC_DISPATCH(LayerNormRow)
    (x.data() + row * cols, cols, weight.data(), bias.data(), epsilon, to);
  });
}

void AddAndRmsNorm(const ColumnBlocks& y, Rows rows, std::span<float> x,
                   std::span<const float> weight, float epsilon,
                   Activations& out, Executor& executor) {
  const size_t cols = weight.size();
  CheckSum(y, rows, x);
  CheckNorm(x, rows, cols, out);
  WriteRows(rows, out, executor, [&](int32_t row, float* to) {
    AddBlocks(y, row - rows.first, x.data() + row * cols);
    HWY_DYNAMIC_DISPATCH(RmsNormRow)
    (x.data() + row * cols, cols, weight.data(), epsilon, to);
  });
}

void GeluErf(const ColumnBlocks& y, Rows rows, Activations& out,
             Executor& executor) {
  MapBlocks(y, rows, out, executor, HWY_DYNAMIC_DISPATCH(GeluErfRow));
}

void GeluTanh(const ColumnBlocks& y, Rows rows, Activations& out,
              Executor& executor) {
  MapBlocks(y, rows, out, executor, HWY_DYNAMIC_DISPATCH(GeluTanhRow));
}

void SwiGlu(const ColumnBlocks& y, Rows rows, Activations& out,
            Executor& executor) {
  const int32_t cols = out.cols();
  CHECK_LE(rows.count, y.max_rows());
  CHECK_EQ(y.cols(), 2 * cols);
  WriteRows(rows, out, executor, [&](int32_t row, float* to) {
    // Pieces in which neither gate nor up crosses a cut.
    for (int32_t column = 0; column < cols;) {
      const std::span<const float> gate = y.RowFrom(row - rows.first, column);
      const std::span<const float> up =
          y.RowFrom(row - rows.first, cols + column);
      const size_t size =
          std::min({gate.size(), up.size(), size_t(cols - column)});
      HWY_DYNAMIC_DISPATCH(SwiGluRow)
      (gate.data(), up.data(), size, to + column);
      column += static_cast<int32_t>(size);
    }
  });
}

}  // namespace folio
#endif  // HWY_ONCE
