#include "runtime/kernels/int4_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/int4_groups.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kSize = Int4Group::kSize;

// Codes of weights on the grid start + step * code, before rounding.
HWY_INLINE V CodeOf(V weight, V start, V inverse_step) {
  const FloatTag d;
  const V code = hn::Round(hn::Mul(hn::Sub(weight, start), inverse_step));
  return hn::Min(hn::Max(code, hn::Zero(d)), hn::Set(d, 15.0f));
}

// The sum of squared errors on the grid.
float ErrorOf(const float* weights, float start, float step) {
  const FloatTag d;
  const V start_v = hn::Set(d, start);
  const V step_v = hn::Set(d, step);
  const V inverse = hn::Set(d, step == 0 ? 0.0f : 1.0f / step);
  V sum = hn::Zero(d);
  for (size_t i = 0; i < kSize; i += kLanes) {
    const V weight = hn::LoadU(d, weights + i);
    const V code = CodeOf(weight, start_v, inverse);
    const V error = hn::Sub(weight, hn::MulAdd(code, step_v, start_v));
    sum = hn::MulAdd(error, error, sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void Encode(const float* weights, float start, float step, uint8_t* codes) {
  const FloatTag d;
  const V start_v = hn::Set(d, start);
  const V inverse = hn::Set(d, step == 0 ? 0.0f : 1.0f / step);
  const hn::RebindToSigned<FloatTag> ints;
  const hn::Rebind<uint8_t, FloatTag> bytes;
  for (size_t i = 0; i < kSize; i += kLanes) {
    const V code = CodeOf(hn::LoadU(d, weights + i), start_v, inverse);
    hn::StoreU(hn::DemoteTo(bytes, hn::ConvertTo(ints, code)), bytes,
               codes + i);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace folio {
namespace {

HWY_EXPORT(ErrorOf);
HWY_EXPORT(Encode);

// Weights beyond f16 meet its greatest number.
Float16 ToF16(float value) {
  constexpr float kMost = 65504.0f;
  return static_cast<Float16>(std::clamp(value, -kMost, kMost));
}

// Where code 0 is.
float Start(const Int4Group& group, Int4Grid grid) {
  return grid == Int4Grid::kSymmetric ? -8 * static_cast<float>(group.step)
                                      : static_cast<float>(group.minimum);
}

}  // namespace

Int4Group QuantiseInt4(std::span<const float, Int4Group::kSize> weights,
                       Int4Grid grid) {
  const auto [least, greatest] = std::ranges::minmax(weights);
  const float largest = std::abs(least) > std::abs(greatest) ? least : greatest;
  Int4Group best;
  float least_error = std::numeric_limits<float>::infinity();
  for (int code = 1; code <= 15; ++code) {
    Int4Group group;
    if (grid == Int4Grid::kAffine) {
      group.step = ToF16((greatest - least) / code);
      group.minimum = ToF16(least);
    } else if (code != 8) {  // That code stands for 0.
      group.step = ToF16(largest / (code - 8));
    } else {
      group.step = ToF16(largest / -8);
    }
    const float error = HWY_DYNAMIC_DISPATCH(ErrorOf)(
        weights.data(), Start(group, grid), static_cast<float>(group.step));
    if (error < least_error) {
      least_error = error;
      best = group;
    }
  }
  HWY_DYNAMIC_DISPATCH(Encode)
  (weights.data(), Start(best, grid), static_cast<float>(best.step),
   best.codes.data());
  return best;
}

}  // namespace folio
#endif  // HWY_ONCE
