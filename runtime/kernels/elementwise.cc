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

// Calls body(offset, load, store) for each vector of `n` elements; the last one
// goes through a small buffer when it is not whole.
template <typename Body>
HWY_INLINE void ForEachVector(const float* in, float* out, size_t n,
                              const Body& body) {
  const FloatTag d;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(body(hn::LoadU(d, in + i), hn::LoadU(d, out + i)), d, out + i);
  }
  if (i == n) return;
  HWY_ALIGN float last_in[kLanes] = {};
  HWY_ALIGN float last_out[kLanes] = {};
  std::copy(in + i, in + n, last_in);
  std::copy(out + i, out + n, last_out);
  hn::Store(body(hn::Load(d, last_in), hn::Load(d, last_out)), d, last_out);
  std::copy_n(last_out, n - i, out + i);
}

void AddRow(const float* y, size_t n, float* x) {
  ForEachVector(y, x, n, [](V a, V b) { return hn::Add(a, b); });
}

// Sum of f(x[i]) with one accumulator for each lane.
template <typename F>
HWY_INLINE float SumRow(const float* x, size_t n, const F& f) {
  const FloatTag d;
  V sum = hn::Zero(d);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    sum = hn::Add(sum, f(hn::LoadU(d, x + i)));
  }
  if (i < n) {
    HWY_ALIGN float last[kLanes] = {};
    std::copy(x + i, x + n, last);
    const V value = f(hn::Load(d, last));
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, n - i), value));
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void LayerNormRow(const float* x, size_t n, const float* weight,
                  const float* bias, float* out) {
  constexpr float kEpsilon = 1e-5f;
  const FloatTag d;
  const float mean = SumRow(x, n, [](V v) { return v; }) / n;
  const V mean_v = hn::Set(d, mean);
  const float variance = SumRow(x, n,
                                [&](V v) {
                                  const V centred = hn::Sub(v, mean_v);
                                  return hn::Mul(centred, centred);
                                }) /
                         n;
  const V scale = hn::Set(d, 1.0f / std::sqrt(variance + kEpsilon));
  ForEachVector(x, out, n, [&](V v, V /*old*/) {
    return hn::Mul(hn::Sub(v, mean_v), scale);
  });
  ForEachVector(weight, out, n, [](V w, V v) { return hn::Mul(w, v); });
  AddRow(bias, n, out);
}

// erf within 1.2e-7: N. Juffa's two polynomials (stackoverflow.com/a/35148199),
// one for small arguments, one for log(1 - erf) beyond.
HWY_INLINE V Erf(V a) {
  const FloatTag d;
  const auto c = [&](float value) { return hn::Set(d, value); };
  const V t = hn::Abs(a);
  const V s = hn::Mul(a, a);

  V r = hn::MulAdd(c(-1.72853470e-5f), t, c(3.83197126e-4f));
  const V u = hn::MulAdd(c(-3.88396438e-3f), t, c(2.42546219e-2f));
  r = hn::MulAdd(r, s, u);
  r = hn::MulAdd(r, t, c(-1.06777877e-1f));
  r = hn::MulAdd(r, t, c(-6.34846687e-1f));
  r = hn::MulAdd(r, t, c(-1.28717512e-1f));
  r = hn::MulAdd(r, t, hn::Neg(t));
  const V far = hn::CopySignToAbs(hn::Sub(c(1.0f), hn::Exp(d, r)), a);

  V p = hn::MulAdd(c(-5.96761703e-4f), s, c(4.99119423e-3f));
  p = hn::MulAdd(p, s, c(-2.67681349e-2f));
  p = hn::MulAdd(p, s, c(1.12819925e-1f));
  p = hn::MulAdd(p, s, c(-3.76125336e-1f));
  p = hn::MulAdd(p, s, c(1.28379166e-1f));
  const V near = hn::MulAdd(p, a, a);

  return hn::IfThenElse(hn::Gt(t, c(0.927734375f)), far, near);
}

void GeluRow(const float* y, size_t n, float* out) {
  const FloatTag d;
  ForEachVector(y, out, n, [&](V v, V /*old*/) {
    const V erf = Erf(hn::Mul(v, hn::Set(d, 0.70710678118654752f)));
    const V half = hn::Mul(v, hn::Set(d, 0.5f));
    return hn::MulAdd(half, erf, half);
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
HWY_EXPORT(GeluRow);

// Calls row_kernel(y's part, its size, the same place in the dense x).
template <typename RowKernel>
void ForEachBlockRow(const ColumnBlocks& y, int32_t rows, std::span<float> x,
                     Executor& executor, const RowKernel& row_kernel) {
  const size_t cols = y.cols();
  CHECK_LE(rows, y.max_rows());
  CHECK_GE(x.size(), rows * cols);
  ParallelRows(executor, rows, [&](int32_t first, int32_t count) {
    for (int32_t row = first; row < first + count; ++row) {
      for (int32_t b = 0; b < y.num_blocks(); ++b) {
        const std::span<const float> part = y.Row(b, row);
        row_kernel(part.data(), part.size(),
                   x.data() + row * cols + y.first_column(b));
      }
    }
  });
}

}  // namespace

void AddColumnBlocks(const ColumnBlocks& y, int32_t rows, std::span<float> x,
                     Executor& executor) {
  ForEachBlockRow(y, rows, x, executor, HWY_DYNAMIC_DISPATCH(AddRow));
}

void GeluErf(const ColumnBlocks& y, int32_t rows, std::span<float> out,
             Executor& executor) {
  ForEachBlockRow(y, rows, out, executor, HWY_DYNAMIC_DISPATCH(GeluRow));
}

void LayerNorm(std::span<const float> x, int32_t rows,
               std::span<const float> weight, std::span<const float> bias,
               std::span<float> out, Executor& executor) {
  const size_t cols = weight.size();
  CHECK_EQ(bias.size(), cols);
  CHECK_GE(x.size(), rows * cols);
  CHECK_GE(out.size(), rows * cols);
  ParallelRows(executor, rows, [&](int32_t first, int32_t count) {
    for (int32_t row = first; row < first + count; ++row) {
      HWY_DYNAMIC_DISPATCH(LayerNormRow)
      (x.data() + row * cols, cols, weight.data(), bias.data(),
       out.data() + row * cols);
    }
  });
}

}  // namespace folio
#endif  // HWY_ONCE
