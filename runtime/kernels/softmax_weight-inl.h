// The numerators of a softmax, on each of Highway's targets. Include after
// foreach_target.h.

// What does not depend on the target, once.
#ifndef RUNTIME_KERNELS_SOFTMAX_WEIGHT_INL_H_ONCE
#define RUNTIME_KERNELS_SOFTMAX_WEIGHT_INL_H_ONCE
namespace folio {

// l -> exp((l - max) * inverse_temperature).
struct Weighting {
  float max;
  float inverse_temperature;
};

}  // namespace folio
#endif  // RUNTIME_KERNELS_SOFTMAX_WEIGHT_INL_H_ONCE

#if defined(RUNTIME_KERNELS_SOFTMAX_WEIGHT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNTIME_KERNELS_SOFTMAX_WEIGHT_INL_H_
#undef RUNTIME_KERNELS_SOFTMAX_WEIGHT_INL_H_
#else
#define RUNTIME_KERNELS_SOFTMAX_WEIGHT_INL_H_
#endif

#include "runtime/kernels/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {

// Each lane's result depends on that lane alone.
HWY_INLINE V SoftmaxWeight(V logit, const Weighting& weighting) {
  const FloatTag d;
  return ExpNotPositive(hn::Mul(hn::Sub(logit, hn::Set(d, weighting.max)),
                                hn::Set(d, weighting.inverse_temperature)));
}

}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#endif  // RUNTIME_KERNELS_SOFTMAX_WEIGHT_INL_H_
