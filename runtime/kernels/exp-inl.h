// The exponential function on each of Highway's targets. Include after
// foreach_target.h.

#if defined(RUNTIME_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNTIME_KERNELS_EXP_INL_H_
#undef RUNTIME_KERNELS_EXP_INL_H_
#else
#define RUNTIME_KERNELS_EXP_INL_H_
#endif

#include "runtime/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {

// exp(x) for x <= 0, within 1 ulp; 0 below -87, where results would no longer
// be normal numbers. Cody and Waite's reduction: x = n ln(2) + r, |r| <= ln(2)
// / 2, and exp(r) by its Taylor series, of which what follows r^7 is less than
// 2^-26 of the result. Highway's own Exp takes half as long again, for
// arguments that a softmax does not have.
HWY_INLINE V ExpNotPositive(V x) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> bits;
  // Adding it leaves the nearest integer in the lowest bits of the sum.
  const V rounder = hn::Set(d, 0x1.8p23f);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), rounder);
  const V n = hn::Sub(shifted, rounder);
  // ln(2) in two parts; n times the first is exact.
  V r = hn::MulAdd(n, hn::Set(d, -0x1.62e4p-1f), x);
  r = hn::MulAdd(n, hn::Set(d, -0x1.7f7d1cp-20f), r);
  V sum = hn::Set(d, 1.0f / 5040);
  for (const float coefficient :
       {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 1.0f / 2, 1.0f, 1.0f}) {
    sum = hn::MulAdd(sum, r, hn::Set(d, coefficient));
  }
  // Times 2^n.
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(bits, shifted));
  const V result = hn::BitCast(d, hn::Add(hn::BitCast(bits, sum), exponent));
  return hn::IfThenElseZero(hn::Ge(x, hn::Set(d, -87.0f)), result);
}

}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#endif  // RUNTIME_KERNELS_EXP_INL_H_
