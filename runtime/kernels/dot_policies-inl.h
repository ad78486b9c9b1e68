// How two matrices of floats, or of bf16, are multiplied on each of Highway's
// targets. Include after foreach_target.h.

#if defined(RUNTIME_KERNELS_DOT_POLICIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNTIME_KERNELS_DOT_POLICIES_INL_H_
#undef RUNTIME_KERNELS_DOT_POLICIES_INL_H_
#else
#define RUNTIME_KERNELS_DOT_POLICIES_INL_H_
#endif

#include <cstring>

#include "runtime/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {

using Words = hn::RebindToUnsigned<FloatTag>;
using WordV = hn::Vec<Words>;

// Vectors of columns that one inner loop holds of each line.
constexpr int32_t kVectorsAtOnce = kLanes == 16 ? 4 : 2;

// How two matrices are multiplied is a policy. The left one has lines of
// Elements; the right one rows of dwords, each of which is a float and meets
// one Element (FloatDots), or two of bf16, which meet two that are neighbours.
// A row is multiplied in kParts parts, one after the other.
//
//   Load<part>(b)           kLanes dwords of a row of the right matrix
//   Broadcast<part>(a, k)   what meets them in row k, from a line, in all lanes
//   Add(a, b, sum)          sum + a * b in each lane
//   Round(x)                kLanes elements of a line, rounded, unless storing
//                           them does that
//   StoreElements(x, to)    kLanes elements of a line
//
// kLines is how many lines one inner loop holds in registers.
struct FloatDots {
  using Element = float;
  static constexpr bool kIsBf16 = false;
  static constexpr int32_t kLines = kLanes == 16 ? 6 : 4;
  static constexpr int32_t kElementsPerDword = 1;
  static constexpr int32_t kParts = 1;

  template <int32_t kPart>
  static HWY_INLINE V Load(const uint32_t* b) {
    return hn::BitCast(FloatTag(), hn::LoadU(Words(), b));
  }
  template <int32_t kPart>
  static HWY_INLINE V Broadcast(const float* a, size_t k) {
    return hn::Set(FloatTag(), a[k]);
  }
  static HWY_INLINE V Add(V a, V b, V sum) { return hn::MulAdd(a, b, sum); }
  static HWY_INLINE V Round(V x) { return x; }
  static HWY_INLINE void StoreElements(V x, float* to) {
    hn::StoreU(x, FloatTag(), to);
  }
};

// Numbers of bf16, all kept as floats. Their products are exact in f32.
struct Bf16Floats : FloatDots {
  static constexpr bool kIsBf16 = true;

  static HWY_INLINE V Round(V x) { return RoundToBf16(x); }
};

// Numbers of bf16, kept as floats, times pairs of bf16: the first of each pair
// is one part, the second the other. The same sums as those of Bf16Floats.
struct FloatPairs : Bf16Floats {
  static constexpr int32_t kElementsPerDword = 2;
  static constexpr int32_t kParts = 2;

  template <int32_t kPart>
  static HWY_INLINE V Load(const uint32_t* b) {
    const WordV second = hn::Set(Words(), 0xFFFF0000u);
#if HWY_TARGET <= HWY_AVX3 && HWY_TARGET != HWY_SCALAR
    if constexpr (kPart == 1) {
      // A load with a mask costs nothing more, and no register.
      const hn::Repartition<uint16_t, FloatTag> halves;
      return hn::BitCast(
          FloatTag(),
          hn::MaskedLoad(hn::MaskFromVec(hn::BitCast(halves, second)), halves,
                         reinterpret_cast<const uint16_t*>(b)));
    }
#endif
    const WordV pair = hn::LoadU(Words(), b);
    return hn::BitCast(FloatTag(), kPart == 0 ? hn::ShiftLeft<16>(pair)
                                              : hn::And(pair, second));
  }
  template <int32_t kPart>
  static HWY_INLINE V Broadcast(const float* a, size_t k) {
    return hn::Set(FloatTag(), a[2 * k + kPart]);
  }
};

#if HWY_TARGET == HWY_AVX3_DL
// Pairs of bf16 times pairs of bf16 by the instructions of AVX512_BF16, which
// Highway's targets do not have and the CPU must. Products are exact in f32;
// numbers below the normal ones count as 0.
struct DotPairs {
  using Element = uint16_t;
  static constexpr bool kIsBf16 = true;
  static constexpr int32_t kLines = 6;
  static constexpr int32_t kElementsPerDword = 2;
  static constexpr int32_t kParts = 1;

  template <int32_t kPart>
  static HWY_INLINE WordV Load(const uint32_t* b) {
    return hn::LoadU(Words(), b);
  }
  template <int32_t kPart>
  static HWY_INLINE WordV Broadcast(const uint16_t* a, size_t k) {
    uint32_t pair;
    std::memcpy(&pair, a + 2 * k, sizeof(pair));
    return hn::Set(Words(), pair);
  }
  static HWY_INLINE V Add(WordV a, WordV b, V sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
  static HWY_INLINE V Round(V x) { return x; }
  static HWY_INLINE void StoreElements(V x, uint16_t* to) {
    const hn::Rebind<uint16_t, FloatTag> halves;
    hn::Vec<decltype(halves)> rounded;
    asm("vcvtneps2bf16 %1, %0" : "=v"(rounded.raw) : "v"(x.raw));
    hn::StoreU(rounded, halves, to);
  }
};
#endif  // HWY_TARGET == HWY_AVX3_DL

}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#endif  // RUNTIME_KERNELS_DOT_POLICIES_INL_H_
