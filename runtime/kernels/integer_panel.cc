#include "runtime/kernels/integer_panel.h"

#include <algorithm>
#include <cstring>

// The target with dot products of int8, which Highway leaves out unless asked.
#define HWY_WANT_AVX3_DL 1
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/integer_panel.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/panel-inl.h"

// Compiled once for each target; what does not depend on it, once.
#ifndef RUNTIME_KERNELS_INTEGER_PANEL_CC_ONCE
#define RUNTIME_KERNELS_INTEGER_PANEL_CC_ONCE
namespace folio {
namespace {

constexpr int32_t kGroup = Int4Group::kSize;

// For many rows, groups of int4 are spread out: codes as int8 has them, steps
// and minimums as floats.
constexpr size_t kFloatLineBytes = kPanelColumns * sizeof(float);
constexpr size_t kSpreadBytes = kInt8GroupBytes + 2 * kFloatLineBytes;

// The most groups that are spread out at a time: 45 KiB. More fall out of the
// nearer caches, with fewer y is written more often.
constexpr int32_t kMostChunkGroups = 18;

// Groups [first, first + count) of a panel, and where they begin, spread out or
// as they are.
struct Groups {
  int32_t first;
  int32_t count;
  const uint8_t* data;
  std::span<const uint8_t> next;  // What is multiplied after them.
};

}  // namespace
}  // namespace folio
#endif

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {
namespace {

using IntTag = hn::RebindToSigned<FloatTag>;
using I = hn::Vec<IntTag>;

// What one inner loop holds in registers: so many vectors of columns, or half
// of them where that is enough for the last panel.
constexpr int32_t kVectors = kLanes == 16 ? 4 : kLanes == 1 ? 1 : 2;
constexpr int32_t kHalfVectors = std::max(1, kVectors / 2);
constexpr int32_t kInt8Rows = kLanes == 16 ? 6 : 2;
constexpr int32_t kInt4Rows = kLanes == 16 ? 3 : 2;
// (More rows and fewer columns: less to load for each sum.)
constexpr int32_t kSpreadRows = kLanes == 16 ? 6 : 2;
constexpr int32_t kSpreadVectors = kHalfVectors;

// acc += the sum of each dword's four products of an unsigned weight and a
// signed x, exactly. `Factor` is x as that needs it, the same in all lanes.
#if HWY_TARGET == HWY_AVX3_DL
using Factor = I;
HWY_INLINE Factor MakeFactor(const int8_t* x) {
  int32_t dword;
  std::memcpy(&dword, x, sizeof(dword));
  return hn::Set(IntTag(), dword);
}
HWY_INLINE I Dot(I acc, I weights, const Factor& x) {
  // (Highway's target does not turn GCC's intrinsic for it on.)
  asm("vpdpbusd %2, %1, %0" : "+v"(acc.raw) : "v"(weights.raw), "v"(x.raw));
  return acc;
}
#elif HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
// pmaddwd on even and odd bytes, widened. (pmaddubsw would saturate.)
using ShortTag = hn::Repartition<int16_t, IntTag>;
struct Factor {
  hn::Vec<ShortTag> even;
  hn::Vec<ShortTag> odd;
};
HWY_INLINE Factor MakeFactor(const int8_t* x) {
  int32_t dword;
  std::memcpy(&dword, x, sizeof(dword));
  const auto both = hn::BitCast(ShortTag(), hn::Set(IntTag(), dword));
  return {hn::ShiftRight<8>(hn::ShiftLeft<8>(both)), hn::ShiftRight<8>(both)};
}
HWY_INLINE I Dot(I acc, I weights, const Factor& x) {
  const hn::RebindToUnsigned<ShortTag> unsigned_shorts;
  const ShortTag shorts;
  const auto both = hn::BitCast(unsigned_shorts, weights);
  const auto even = hn::And(both, hn::Set(unsigned_shorts, 0xFF));
  const auto odd = hn::ShiftRight<8>(both);
  I unused = hn::Zero(IntTag());
  acc = hn::ReorderWidenMulAccumulate(IntTag(), hn::BitCast(shorts, even),
                                      x.even, acc, unused);
  return hn::ReorderWidenMulAccumulate(IntTag(), hn::BitCast(shorts, odd),
                                       x.odd, acc, unused);
}
#else
struct Factor {
  I x[4];
};
HWY_INLINE Factor MakeFactor(const int8_t* x) {
  const IntTag d;
  return {
      {hn::Set(d, x[0]), hn::Set(d, x[1]), hn::Set(d, x[2]), hn::Set(d, x[3])}};
}
HWY_INLINE I Dot(I acc, I weights, const Factor& x) {
  const hn::RebindToUnsigned<IntTag> words;
  const auto byte = [&](auto shifted) {
    return hn::BitCast(IntTag(), hn::And(shifted, hn::Set(words, 0xFF)));
  };
  const auto w = hn::BitCast(words, weights);
  acc = hn::Add(acc, hn::Mul(byte(w), x.x[0]));
  acc = hn::Add(acc, hn::Mul(byte(hn::ShiftRight<8>(w)), x.x[1]));
  acc = hn::Add(acc, hn::Mul(byte(hn::ShiftRight<16>(w)), x.x[2]));
  return hn::Add(acc, hn::Mul(byte(hn::ShiftRight<24>(w)), x.x[3]));
}
#endif

// kLanes dwords of four codes; they need not be aligned.
HWY_INLINE I LoadCodes(const uint8_t* from) {
#if HWY_TARGET == HWY_SCALAR
  int32_t dword;
  std::memcpy(&dword, from, sizeof(dword));
  return hn::Set(IntTag(), dword);
#else
  const hn::Repartition<uint8_t, IntTag> bytes;
  return hn::BitCast(IntTag(), hn::LoadU(bytes, from));
#endif
}

// REQUIRES: an aligned place.
HWY_INLINE void StoreCodes(I codes, uint8_t* to) {
  hn::Store(codes, IntTag(), reinterpret_cast<int32_t*>(to));
}

// The low and the high halves of bytes.
struct Halves {
  I low;
  I high;
};
HWY_INLINE Halves Split(I bytes) {
  const hn::RebindToUnsigned<IntTag> words;
  const auto mask = hn::Set(words, 0x0F0F0F0Fu);
  const auto both = hn::BitCast(words, bytes);
  return {hn::BitCast(IntTag(), hn::And(both, mask)),
          hn::BitCast(IntTag(), hn::And(hn::ShiftRight<4>(both), mask))};
}

HWY_INLINE V LoadF16(const uint8_t* from) {
  const hn::Rebind<hwy::float16_t, FloatTag> halves;
  return hn::PromoteTo(
      FloatTag(),
      hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(from)));
}

// acc[kRows][kVectors] += one line of weights times four elements of each row.
template <int32_t kRows, int32_t kVectors>
HWY_INLINE void DotLine(const I* weights, const int8_t* x, size_t x_stride,
                        I (&acc)[kRows][kVectors]) {
  for (int32_t r = 0; r < kRows; ++r) {
    const Factor factor = MakeFactor(x + r * x_stride);
    for (int32_t v = 0; v < kVectors; ++v) {
      acc[r][v] = Dot(acc[r][v], weights[v], factor);
    }
  }
}

// The same for a line of int8 at `codes`.
template <int32_t kRows, int32_t kVectors>
HWY_INLINE void DotInt8Line(const uint8_t* codes, const int8_t* x,
                            size_t x_stride, I (&acc)[kRows][kVectors]) {
  I weights[kVectors];
  for (int32_t v = 0; v < kVectors; ++v) {
    weights[v] = LoadCodes(codes + size_t(v) * kLanes * 4);
  }
  DotLine<kRows, kVectors>(weights, x, x_stride, acc);
}

template <int32_t kRows, int32_t kVectors>
HWY_INLINE void DotInt8Group(const uint8_t* codes, const int8_t* x,
                             size_t x_stride, I (&acc)[kRows][kVectors]) {
  for (int32_t line = 0; line < kGroupLines; ++line) {
    DotInt8Line<kRows, kVectors>(codes + line * kLineBytes, x + line * 4,
                                 x_stride, acc);
  }
}

// A group of int4, whose codes begin at `codes`.
template <int32_t kRows, int32_t kVectors>
HWY_INLINE void DotInt4Group(const uint8_t* codes, const int8_t* x,
                             size_t x_stride, I (&acc)[kRows][kVectors]) {
  for (int32_t pair = 0; pair < kGroupLines / 2; ++pair) {
    I low[kVectors];
    I high[kVectors];
    for (int32_t v = 0; v < kVectors; ++v) {
      const Halves halves =
          Split(LoadCodes(codes + pair * kLineBytes + size_t(v) * kLanes * 4));
      low[v] = halves.low;
      high[v] = halves.high;
    }
    DotLine<kRows, kVectors>(low, x + pair * 4, x_stride, acc);
    DotLine<kRows, kVectors>(high, x + (pair + kGroupLines / 2) * 4, x_stride,
                             acc);
  }
}

// Rows [row, row + kRows) times a panel of int8.
template <int32_t kRows, int32_t kVectors>
HWY_NOINLINE void Int8Rows(const IntegerPanel& p, int32_t row, Ahead ahead) {
  const FloatTag d;
  Target<kRows> target(p.y + size_t(row) * p.y_stride, p.y_stride, p.cols,
                       /*load=*/false);
  const int8_t* x = p.x + row * p.x_stride;
  for (int32_t c = 0; c < p.cols; c += kVectors * kLanes) {
    I acc[kRows][kVectors];
    for (int32_t r = 0; r < kRows; ++r) {
      // Codes are 128 too great.
      for (I& a : acc[r]) a = hn::Set(IntTag(), -128 * p.row_sums[row + r]);
    }
    for (int32_t g = 0; g < p.num_groups; ++g) {
      ahead.Ask();
      DotInt8Group<kRows, kVectors>(p.panel + g * kInt8GroupBytes + c * 4,
                                    x + size_t(g) * kGroup, p.x_stride, acc);
    }
    for (int32_t r = 0; r < kRows; ++r) {
      const V row_scale = hn::Set(d, p.row_scales[row + r]);
      for (int32_t v = 0; v < kVectors; ++v) {
        const int32_t column = c + v * kLanes;
        const V sum = hn::Mul(hn::ConvertTo(d, acc[r][v]),
                              hn::Load(d, p.scales + column));
        hn::StoreU(hn::MulAdd(sum, row_scale, hn::Load(d, p.bias + column)), d,
                   target.Row(r) + column);
      }
    }
  }
}

// The steps, or minimums, of a group's columns, and the next line of them.
template <bool kSpread>
HWY_INLINE V LoadSteps(const uint8_t* steps, int32_t column) {
  if constexpr (kSpread) {
    return hn::LoadU(FloatTag(),
                     reinterpret_cast<const float*>(steps) + column);
  } else {
    return LoadF16(steps + size_t(column) * 2);
  }
}

// f[kRows][kVectors] += a group's step (and minimum) times its exact sums.
template <int32_t kRows, int32_t kVectors, bool kAffine, bool kSpread>
HWY_INLINE void AddGroup(const uint8_t* steps, int32_t column,
                         const int32_t* group_sums, int32_t num_groups,
                         const I (&acc)[kRows][kVectors],
                         V (&f)[kRows][kVectors]) {
  const FloatTag d;
  const uint8_t* const minimums =
      steps + (kSpread ? kFloatLineBytes : kF16LineBytes);
  for (int32_t v = 0; v < kVectors; ++v) {
    const V step = LoadSteps<kSpread>(steps, column + v * kLanes);
    for (int32_t r = 0; r < kRows; ++r) {
      f[r][v] = hn::MulAdd(hn::ConvertTo(d, acc[r][v]), step, f[r][v]);
    }
    if constexpr (kAffine) {
      const V minimum = LoadSteps<kSpread>(minimums, column + v * kLanes);
      for (int32_t r = 0; r < kRows; ++r) {
        const float sum =
            static_cast<float>(group_sums[size_t(r) * num_groups]);
        f[r][v] = hn::MulAdd(hn::Set(d, sum), minimum, f[r][v]);
      }
    }
  }
}

// Rows [row, row + kRows) times some groups of a panel of int4; y holds the sum
// over the groups before them.
template <int32_t kRows, int32_t kVectors, bool kAffine, bool kSpread>
HWY_NOINLINE void Int4Rows(const IntegerPanel& p, const Groups& groups,
                           int32_t row, Ahead ahead) {
  const FloatTag d;
  const bool is_first = groups.first == 0;
  const bool is_last = groups.first + groups.count == p.num_groups;
  const size_t group_bytes = kSpread ? kSpreadBytes : p.group_bytes;
  constexpr size_t kCodeBytes = kSpread ? kInt8GroupBytes : kInt4CodeBytes;
  Target<kRows> target(p.y + size_t(row) * p.y_stride, p.y_stride, p.cols,
                       /*load=*/!is_first);
  for (int32_t c = 0; c < p.cols; c += kVectors * kLanes) {
    V f[kRows][kVectors];
    for (int32_t r = 0; r < kRows; ++r) {
      for (int32_t v = 0; v < kVectors; ++v) {
        f[r][v] = is_first ? hn::Zero(d)
                           : hn::LoadU(d, target.Row(r) + c + v * kLanes);
      }
    }
    for (int32_t i = 0; i < groups.count; ++i) {
      ahead.Ask();
      const int32_t g = groups.first + i;
      const uint8_t* const group = groups.data + i * group_bytes;
      const int32_t* const sums = p.group_sums + size_t(row) * p.num_groups + g;
      const int8_t* const x = p.x + row * p.x_stride + size_t(g) * kGroup;
      I acc[kRows][kVectors];
      for (int32_t r = 0; r < kRows; ++r) {
        // On a symmetric grid codes are 8 too great.
        const int32_t start = kAffine ? 0 : -8 * sums[size_t(r) * p.num_groups];
        for (I& a : acc[r]) a = hn::Set(IntTag(), start);
      }
      if constexpr (kSpread) {
        DotInt8Group<kRows, kVectors>(group + size_t(c) * 4, x, p.x_stride,
                                      acc);
      } else {
        DotInt4Group<kRows, kVectors>(group + size_t(c) * 4, x, p.x_stride,
                                      acc);
      }
      AddGroup<kRows, kVectors, kAffine, kSpread>(group + kCodeBytes, c, sums,
                                                  p.num_groups, acc, f);
    }
    for (int32_t r = 0; r < kRows; ++r) {
      const V row_scale = hn::Set(d, p.row_scales[row + r]);
      for (int32_t v = 0; v < kVectors; ++v) {
        const int32_t column = c + v * kLanes;
        const V result = is_last ? hn::MulAdd(f[r][v], row_scale,
                                              hn::Load(d, p.bias + column))
                                 : f[r][v];
        hn::StoreU(result, d, target.Row(r) + column);
      }
    }
  }
}

template <int32_t kVectors>
void MultiplyInt8(const IntegerPanel& p) {
  InPieces<kInt8Rows>(p.rows, [&]<int32_t kRows>(int32_t row) {
    Int8Rows<kRows, kVectors>(p, row,
                              Ahead(p.next, NumPieces<kInt8Rows>(p.rows),
                                    row / kInt8Rows, p.num_groups));
  });
}

void Int8Panel(const IntegerPanel& p) {
  if (p.cols <= kHalfVectors * kLanes) {
    MultiplyInt8<kHalfVectors>(p);
  } else {
    MultiplyInt8<kVectors>(p);
  }
}

template <int32_t kMostRows, int32_t kVectors, bool kSpread>
void MultiplyInt4(const IntegerPanel& p, const Groups& groups) {
  const int32_t parts = NumPieces<kVectors * kLanes>(p.cols);
  InPieces<kMostRows>(p.rows, [&]<int32_t kRows>(int32_t row) {
    const Ahead ahead(groups.next, NumPieces<kMostRows>(p.rows),
                      row / kMostRows, groups.count * parts);
    if (p.affine) {
      Int4Rows<kRows, kVectors, true, kSpread>(p, groups, row, ahead);
    } else {
      Int4Rows<kRows, kVectors, false, kSpread>(p, groups, row, ahead);
    }
  });
}

void SpreadLine(const uint8_t* from, uint8_t* to) {
  for (int32_t i = 0; i < kPanelColumns; i += kLanes) {
    hn::Store(LoadF16(from + size_t(i) * 2), FloatTag(),
              reinterpret_cast<float*>(to) + i);
  }
}

void SpreadGroups(const IntegerPanel& p, int32_t first, int32_t count,
                  uint8_t* out) {
  for (int32_t g = 0; g < count; ++g) {
    const uint8_t* from = p.panel + (first + g) * p.group_bytes;
    for (size_t i = 0; i < kInt4CodeBytes; i += size_t(kLanes) * 4) {
      const Halves halves = Split(LoadCodes(from + i));
      StoreCodes(halves.low, out + i);
      StoreCodes(halves.high, out + kInt4CodeBytes + i);
    }
    from += kInt4CodeBytes;
    SpreadLine(from, out + kInt8GroupBytes);
    if (p.affine) {
      SpreadLine(from + kF16LineBytes, out + kInt8GroupBytes + kFloatLineBytes);
    }
    out += kSpreadBytes;
  }
}

// The `count` groups from `first` on, as far as there are; after the last, the
// first ones of the next panel.
std::span<const uint8_t> AfterGroups(const IntegerPanel& p, int32_t first,
                                     int32_t count) {
  const auto rest = first == p.num_groups
                        ? p.next
                        : std::span(p.panel, p.num_groups * p.group_bytes)
                              .subspan(first * p.group_bytes);
  return rest.first(std::min(rest.size(), count * p.group_bytes));
}

void Int4Panel(const IntegerPanel& p) {
  if (p.rows <= kInt4Rows) {
    const Groups all = {0, p.num_groups, p.panel, p.next};
    if (p.cols <= kHalfVectors * kLanes) {
      MultiplyInt4<kInt4Rows, kHalfVectors, /*kSpread=*/false>(p, all);
    } else {
      MultiplyInt4<kInt4Rows, kVectors, /*kSpread=*/false>(p, all);
    }
    return;
  }
  HWY_ALIGN uint8_t spread[kMostChunkGroups * kSpreadBytes];
  const int32_t chunks = NumPieces<kMostChunkGroups>(p.num_groups);
  const int32_t most = (p.num_groups + chunks - 1) / chunks;
  for (int32_t first = 0; first < p.num_groups; first += most) {
    const int32_t count = std::min(most, p.num_groups - first);
    SpreadGroups(p, first, count, spread);
    MultiplyInt4<kSpreadRows, kSpreadVectors, /*kSpread=*/true>(
        p, {first, count, spread, AfterGroups(p, first + count, most)});
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace folio {
namespace {
HWY_EXPORT(Int8Panel);
HWY_EXPORT(Int4Panel);
}  // namespace

void MultiplyInt8Panel(const IntegerPanel& panel) {
  HWY_DYNAMIC_DISPATCH(Int8Panel)(panel);
}

void MultiplyInt4Panel(const IntegerPanel& panel) {
  HWY_DYNAMIC_DISPATCH(Int4Panel)(panel);
}

}  // namespace folio
#endif  // HWY_ONCE
