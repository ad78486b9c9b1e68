// Rounding a row of floats to int8 with a scale, on each of Highway's targets.
// Include after foreach_target.h.

#if defined(RUNTIME_KERNELS_QUANTISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNTIME_KERNELS_QUANTISE_INL_H_
#undef RUNTIME_KERNELS_QUANTISE_INL_H_
#else
#define RUNTIME_KERNELS_QUANTISE_INL_H_
#endif

#include <bit>
#include <limits>

#include "runtime/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {

// x = scale * q with q = round(x / scale) from -127 to 127 and scale =
// max |x| / 127. The scale of a row that holds NaN or an infinity is NaN; rows
// whose greatest element is below 1e-30 become zeros.
class RowQuantiser {
 public:
  using Int8 = hn::Rebind<int8_t, FloatTag>;
  using Int32 = hn::RebindToSigned<FloatTag>;

  // REQUIRES: whole vectors.
  RowQuantiser(const float* row, size_t size)
      : greatest_(GreatestSize(row, size)), keep_(greatest_ >= 1e-30f) {}

  float scale() const {
    if (greatest_ != greatest_) return greatest_;
    return keep_ ? greatest_ / 127.0f : 0.0f;
  }

  // Writes q of the kLanes elements at `from`; returns them, too.
  HWY_INLINE hn::Vec<Int32> Write(const float* from, int8_t* to) const {
    const FloatTag d;
    // Without keep_ the product could be NaN, for which there is no integer.
    const V scaled =
        keep_ ? hn::Mul(hn::LoadU(d, from), hn::Set(d, 127.0f / greatest_))
              : hn::Zero(d);
    const hn::Vec<Int32> q = hn::NearestInt(scaled);
    hn::StoreU(hn::DemoteTo(Int8(), q), Int8(), to);
    return q;
  }

 private:
  // The greatest |x|, or NaN when there is NaN or an infinity. The bits of
  // numbers that are not negative ascend as the numbers do, and after those of
  // the greatest come infinity and the NaNs.
  static HWY_INLINE float GreatestSize(const float* row, size_t size) {
    const Int32 d;
    const auto size_of = [&](size_t i) {
      return hn::BitCast(d, hn::Abs(hn::LoadU(FloatTag(), row + i)));
    };
    auto even = hn::Zero(d);
    auto odd = hn::Zero(d);
    size_t i = 0;
    for (; i + 2 * kLanes <= size; i += 2 * kLanes) {
      even = hn::Max(even, size_of(i));
      odd = hn::Max(odd, size_of(i + kLanes));
    }
    if (i < size) even = hn::Max(even, size_of(i));
    const int32_t bits = hn::GetLane(hn::MaxOfLanes(d, hn::Max(even, odd)));
    const float greatest = std::bit_cast<float>(bits);
    return greatest - greatest == 0 ? greatest
                                    : std::numeric_limits<float>::quiet_NaN();
  }

  float greatest_;
  bool keep_;  // Not of NaN.
};

}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#endif  // RUNTIME_KERNELS_QUANTISE_INL_H_
