// The small matrix products inside attention, on each of Highway's targets.
// Include after foreach_target.h.

#if defined(RUNTIME_KERNELS_ATTENTION_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNTIME_KERNELS_ATTENTION_DOTS_INL_H_
#undef RUNTIME_KERNELS_ATTENTION_DOTS_INL_H_
#else
#define RUNTIME_KERNELS_ATTENTION_DOTS_INL_H_
#endif

#include "runtime/kernels/dot_policies-inl.h"

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {

// c[kLines][kVectors * kLanes] += a x b[begin .. end), rows of b in order, from
// `column` on: the same operations for each element of c whatever the number of
// lines and vectors. With kFresh, c is 0 before. b.At(row, column) is where a
// vector lies. Strides in elements and floats. Asks `prefetcher` for a piece
// with each row of b.
template <class P, bool kFresh, int32_t kLines, int32_t kVectors, class B,
          class Prefetcher>
HWY_INLINE void AddProducts(const typename P::Element* a, size_t a_stride,
                            const B& b, size_t column, size_t begin, size_t end,
                            float* c, size_t c_stride, Prefetcher& prefetcher) {
  const FloatTag d;
  V sum[kLines][kVectors];
#pragma GCC unroll 8
  for (int32_t l = 0; l < kLines; ++l) {
#pragma GCC unroll 4
    for (int32_t v = 0; v < kVectors; ++v) {
      sum[l][v] = kFresh ? hn::Zero(d)
                         : hn::Load(d, c + l * c_stride + column + v * kLanes);
    }
  }
  const auto add_part = [&]<int32_t kPart>(size_t k) {
    decltype(P::template Load<kPart>(b.At(0, 0))) right[kVectors];
#pragma GCC unroll 4
    for (int32_t v = 0; v < kVectors; ++v) {
      right[v] = P::template Load<kPart>(b.At(k, column + v * kLanes));
    }
#pragma GCC unroll 8
    for (int32_t l = 0; l < kLines; ++l) {
      const auto left = P::template Broadcast<kPart>(a + l * a_stride, k);
#pragma GCC unroll 4
      for (int32_t v = 0; v < kVectors; ++v) {
        sum[l][v] = P::Add(left, right[v], sum[l][v]);
      }
    }
  };
  const size_t first_piece = prefetcher.Take(end - begin);
  for (size_t k = begin; k < end; ++k) {
    prefetcher.AskFor(first_piece + k - begin);
    add_part.template operator()<0>(k);
    if constexpr (P::kParts == 2) add_part.template operator()<1>(k);
  }
#pragma GCC unroll 8
  for (int32_t l = 0; l < kLines; ++l) {
#pragma GCC unroll 4
    for (int32_t v = 0; v < kVectors; ++v) {
      hn::Store(sum[l][v], d, c + l * c_stride + column + v * kLanes);
    }
  }
}

// AddProducts for columns [column, end_column). REQUIRES: whole vectors.
template <class P, bool kFresh, int32_t kLines, class B, class Prefetcher>
HWY_INLINE void AddAllProducts(const typename P::Element* a, size_t a_stride,
                               const B& b, size_t column, size_t end_column,
                               size_t begin, size_t end, float* c,
                               size_t c_stride, Prefetcher& prefetcher) {
  const auto add = [&]<int32_t kVectors>() {
    for (; column + kVectors * kLanes <= end_column;
         column += kVectors * kLanes) {
      AddProducts<P, kFresh, kLines, kVectors>(a, a_stride, b, column, begin,
                                               end, c, c_stride, prefetcher);
    }
  };
  add.template operator()<kVectorsAtOnce>();
  if constexpr (kVectorsAtOnce > 2) add.template operator()<2>();
  add.template operator()<1>();
}

}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#endif  // RUNTIME_KERNELS_ATTENTION_DOTS_INL_H_
