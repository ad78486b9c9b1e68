// The vectors of floats that the kernels compute with, on each of Highway's
// targets. Include after foreach_target.h.

#if defined(RUNTIME_KERNELS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNTIME_KERNELS_VECTORS_INL_H_
#undef RUNTIME_KERNELS_VECTORS_INL_H_
#else
#define RUNTIME_KERNELS_VECTORS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
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

// kLanes elements in memory, which need not be aligned: floats, the bits of
// bf16, or int8. Storing bf16 does what ToBf16 does.
HWY_INLINE V LoadElements(const float* from) {
  return hn::LoadU(FloatTag(), from);
}
HWY_INLINE V LoadElements(const uint16_t* from) {
  const hn::RebindToUnsigned<FloatTag> words;
  const hn::Rebind<uint16_t, FloatTag> halves;
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(
                                     words, hn::LoadU(halves, from))));
}
HWY_INLINE V LoadElements(const int8_t* from) {
  const hn::RebindToSigned<FloatTag> numbers;
  const hn::Rebind<int8_t, FloatTag> bytes;
  return hn::ConvertTo(FloatTag(),
                       hn::PromoteTo(numbers, hn::LoadU(bytes, from)));
}
HWY_INLINE void StoreElements(V value, float* to) {
  hn::StoreU(value, FloatTag(), to);
}
// The bits of `value` rounded to bf16, in the upper halves; anything below.
HWY_INLINE auto RoundedBits(V value) {
  const hn::RebindToUnsigned<FloatTag> words;
  const auto bits = hn::BitCast(words, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(words, 0x7FFF)), odd);
  const auto quiet = hn::Or(bits, hn::Set(words, 0x400000));
  const auto is_nan = hn::RebindMask(words, hn::IsNaN(value));
  return hn::IfThenElse(is_nan, quiet, rounded);
}
HWY_INLINE V RoundToBf16(V value) {
  const hn::RebindToUnsigned<FloatTag> words;
  return hn::BitCast(FloatTag(),
                     hn::And(RoundedBits(value), hn::Set(words, 0xFFFF0000u)));
}
HWY_INLINE void StoreElements(V value, uint16_t* to) {
  const hn::RebindToSigned<FloatTag> numbers;
  const hn::Rebind<uint16_t, FloatTag> halves;
  // (Narrowing saturates, and these fit.)
  const auto upper = hn::ShiftRight<16>(RoundedBits(value));
  hn::StoreU(hn::DemoteTo(halves, hn::BitCast(numbers, upper)), halves, to);
}

// Calls body(i, n) for pieces of [0, size): n is kLanes, but for the last piece
// perhaps fewer.
template <typename Body>
HWY_INLINE void ForEachPiece(size_t size, const Body& body) {
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) body(i, size_t{kLanes});
  if (i < size) body(i, size - i);
}

// LoadElements and StoreElements of the first `n` lanes; the others load as 0.
// When n is kLanes, as fast as those.
template <typename T>
HWY_INLINE V LoadPart(const T* from, size_t n) {
  if constexpr (kLanes > 1) {
    if (HWY_UNLIKELY(n < kLanes)) {
      HWY_ALIGN T part[kLanes] = {};
      std::copy_n(from, n, part);
      return LoadElements(part);
    }
  }
  return LoadElements(from);
}
template <typename T>
HWY_INLINE void StorePart(V value, T* to, size_t n) {
  if constexpr (kLanes > 1) {
    if (HWY_UNLIKELY(n < kLanes)) {
      HWY_ALIGN T part[kLanes];
      StoreElements(value, part);
      std::copy_n(part, n, to);
      return;
    }
  }
  StoreElements(value, to);
}

// Sum of f(x[i]) with one accumulator for each lane.
template <typename F>
HWY_INLINE float SumRow(const float* x, size_t size, const F& f) {
  const FloatTag d;
  V sum = hn::Zero(d);
  ForEachPiece(size, [&](size_t i, size_t n) {
    const V value = f(LoadPart(x + i, n));
    sum = hn::Add(
        sum, n == kLanes ? value : hn::IfThenElseZero(hn::FirstN(d, n), value));
  });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// 1 / sqrt(mean of squares + epsilon).
HWY_INLINE float RmsScale(const float* x, size_t size, float epsilon) {
  const float squares = SumRow(x, size, [](V v) { return hn::Mul(v, v); });
  return 1.0f / std::sqrt(squares / size + epsilon);
}

}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#endif  // RUNTIME_KERNELS_VECTORS_INL_H_
