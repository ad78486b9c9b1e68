// The vectors of floats that the kernels compute with, on each of Highway's
// targets. Include after foreach_target.h.

#if defined(RUNTIME_KERNELS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNTIME_KERNELS_VECTORS_INL_H_
#undef RUNTIME_KERNELS_VECTORS_INL_H_
#else
#define RUNTIME_KERNELS_VECTORS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, the columns of a cache line and the most that any x86
// target has; then the number is known when compiling.
using FloatTag = hn::CappedTag<float, 16>;
using V = hn::Vec<FloatTag>;
constexpr int32_t kLanes = hn::MaxLanes(FloatTag());

}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#endif  // RUNTIME_KERNELS_VECTORS_INL_H_
