// The online softmax of attention on each of Highway's targets. Include after
// foreach_target.h.

#if defined(RUNTIME_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNTIME_KERNELS_SOFTMAX_INL_H_
#undef RUNTIME_KERNELS_SOFTMAX_INL_H_
#else
#define RUNTIME_KERNELS_SOFTMAX_INL_H_
#endif

#include "runtime/kernels/attention_kv-inl.h"

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {

// 2^x for x <= 0: exactly 1 for 0, 0 below -126, NaN for NaN; elsewhere with a
// relative error of at most 2^-21. The power's whole part goes to the exponent,
// the rest r, from -1/2 to 1/2, into 1 + r p(r), where p is the polynomial that
// meets (2^r - 1) / r in the five Chebyshev nodes of that interval.
HWY_INLINE V Exp2(V x) {
  const FloatTag d;
  // Adding it leaves a number's whole part, plus 127, in the lowest bits.
  const V magic = hn::Set(d, 0x1.8p23f + 127.0f);
  const V shifted = hn::Add(x, magic);
  const V rest = hn::Sub(x, hn::Sub(shifted, magic));
  V power = hn::Set(d, 0x1.5ec866p-10f);
  for (const float term :
       {0x1.3cbf60p-7f, 0x1.c6afeep-5f, 0x1.ebfa4cp-3f, 0x1.62e430p-1f, 1.0f}) {
    power = hn::MulAdd(power, rest, hn::Set(d, term));
  }
  const V whole =
      hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(Words(), shifted)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)),
                            hn::Mul(power, whole));
}

// 2^(x + 1/2) for x <= -1/2, rounded to bf16; 0 below -126, NaN for NaN. As
// Exp2, but with the polynomial that meets sqrt(2) 2^r in the four Chebyshev
// nodes, whose relative error of at most 2^-13 is little beside that of the
// rounding, 2^-9. What it gives is from 1 to 2, where one sum rounds, and no
// power of 2 changes that.
HWY_INLINE V RoundedExp2(V x) {
  const FloatTag d;
  const V magic = hn::Set(d, 0x1.8p23f + 127.0f);
  const V shifted = hn::Add(x, magic);
  const V rest = hn::Sub(x, hn::Sub(shifted, magic));
  V power = hn::Set(d, 0x1.43732cp-4f);
  for (const float term : {0x1.5f6126p-2f, 0x1.f5e276p-1f, 0x1.6a02e8p+0f}) {
    power = hn::MulAdd(power, rest, hn::Set(d, term));
  }
  // The unit in the last place of this sum is that of bf16 from 1 to 2.
  const V rounder = hn::Set(d, 0x1.8p16f);
  power = hn::Sub(hn::Add(power, rounder), rounder);
  const V whole =
      hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(Words(), shifted)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)),
                            hn::Mul(power, whole));
}

HWY_INLINE float Exp2(float x) {
  return hn::GetLane(Exp2(hn::Set(FloatTag(), x)));
}

// (std::fill becomes an instruction that takes long to begin.) REQUIRES: whole
// vectors.
HWY_INLINE void SetZero(float* values, size_t size) {
  for (size_t i = 0; i < size; i += kLanes) {
    hn::Store(hn::Zero(FloatTag()), FloatTag(), values + i);
  }
}

HWY_INLINE void Rescale(float factor, size_t size, float* values) {
  const FloatTag d;
  for (size_t i = 0; i < size; i += kLanes) {
    hn::Store(hn::Mul(hn::Load(d, values + i), hn::Set(d, factor)), d,
              values + i);
  }
}

// What Softmax keeps of a line.
struct LineState {
  float* sums;     // [padded_dim]
  float* max;      // [1]
  float* partial;  // [kLanes]: the total is their sum.
};

// Makes one line's scores of a block ready for Weigh: times those of
// `key_scales`, if there are any; -infinity at positions that it does not see.
// Returns the greatest of them and of the line's before. Asks `prefetcher` for
// pieces meanwhile.
template <bool kHasScales>
HWY_INLINE float GreatestScore(const float* key_scales, Range seen,
                               const LineState& line, float* scores,
                               Prefetcher& prefetcher) {
  const FloatTag d;
  const V nothing = hn::Set(d, -std::numeric_limits<float>::infinity());
  const bool sees_all = seen.begin == 0 && seen.end == kBlock;
  V greatest = hn::Set(d, *line.max);
  for (int32_t j = 0; j < kBlock; j += kLanes) {
    prefetcher.AskForNext(1);
    V score = hn::Load(d, scores + j);
    if constexpr (kHasScales) {
      score = hn::Mul(score, hn::Load(d, key_scales + j));
    }
    if (!sees_all) {
      const auto before = [&](int32_t position) {
        return hn::FirstN(d, static_cast<size_t>(std::max(position - j, 0)));
      };
      const auto is_seen = hn::AndNot(before(seen.begin), before(seen.end));
      score = hn::IfThenElse(is_seen, score, nothing);
    }
    if (kHasScales || !sees_all) hn::Store(score, d, scores + j);
    greatest = hn::Max(greatest, score);
  }
  return hn::GetLane(hn::MaxOfLanes(d, greatest));
}

// Turns scores into weights, exp2 of them less what is nearly `max`, times the
// values' scales if there are any, and `max` into the line's. Asks `prefetcher`
// for pieces meanwhile.
template <class P, bool kHasScales>
HWY_INLINE void Weigh(const float* scores, const float* value_scales, float max,
                      size_t padded_dim, const LineState& line,
                      typename P::Element* weights, Prefetcher& prefetcher) {
  const FloatTag d;
  constexpr bool kRounds = P::kIsBf16 && !kHasScales;
  const V shift = hn::Set(d, kRounds ? max + 0.5f : max);
  V sum = hn::Zero(d);
  for (int32_t j = 0; j < kBlock; j += kLanes) {
    prefetcher.AskForNext(1);
    const V score = hn::Sub(hn::Load(d, scores + j), shift);
    // With kRounds the sum is that of what they are rounded to: so they add up
    // to 1.
    V weight = kRounds ? RoundedExp2(score) : Exp2(score);
    sum = hn::Add(sum, weight);
    if constexpr (kHasScales) {
      weight = P::Round(hn::Mul(weight, hn::Load(d, value_scales + j)));
    }
    P::StoreElements(weight, weights + j);
  }
  if (max > *line.max) {
    const float factor = Exp2(*line.max - max);
    Rescale(factor, padded_dim, line.sums);
    Rescale(factor, kLanes, line.partial);
    *line.max = max;
  }
  hn::Store(hn::Add(hn::Load(d, line.partial), sum), d, line.partial);
}

// See MergeAttention.
HWY_INLINE void MergePart(const AttentionPart& from, int32_t head_dim,
                          const AttentionPart& into) {
  if (*from.total == 0) return;
  if (*into.total == 0) {
    std::copy_n(from.sums, head_dim, into.sums);
    *into.max = *from.max;
    *into.total = *from.total;
    return;
  }
  const float max = std::max(*from.max, *into.max);
  const float old_factor = Exp2(*into.max - max);
  const float new_factor = Exp2(*from.max - max);
  const V factor = hn::Set(FloatTag(), old_factor);
  ForEachPiece(head_dim, [&](size_t i, size_t n) {
    const V scaled =
        hn::Mul(LoadPart(from.sums + i, n), hn::Set(FloatTag(), new_factor));
    StorePart(hn::MulAdd(LoadPart(into.sums + i, n), factor, scaled),
              into.sums + i, n);
  });
  *into.total = *into.total * old_factor + *from.total * new_factor;
  *into.max = max;
}

}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#endif  // RUNTIME_KERNELS_SOFTMAX_INL_H_
