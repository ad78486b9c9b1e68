#include "runtime/kernels/integer_panel.h"

#include <algorithm>
#include <cstring>

// The target with dot products of int8, which Highway leaves out unless asked.
#define HWY_WANT_AVX3_DL 1
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/integer_panel.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/vectors-inl.h"

// Compiled once for each target; what does not depend on it, once.
#ifndef RUNTIME_KERNELS_INTEGER_PANEL_CC_ONCE
#define RUNTIME_KERNELS_INTEGER_PANEL_CC_ONCE
namespace folio {
namespace {

constexpr int32_t kGroup = Int4Group::kSize;

// Groups whose codes are spread out at a time, for many rows: 16 KiB.
constexpr int32_t kChunkGroups = 8;

// Groups [first, first + count) of a panel; `codes` as int8 has them, or null.
struct Groups {
  int32_t first;
  int32_t count;
  const uint8_t* codes;
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

// Where kRows rows of the result go: to y, or through `tile` when the panel is
// the last one and narrower.
template <int32_t kRows>
class Target {
 public:
  Target(const IntegerPanel& p, int32_t row, bool load)
      : cols_(p.cols), y_(p.y + size_t(row) * p.y_stride), stride_(p.y_stride) {
    if (cols_ == kPanelColumns || !load) return;
    for (int32_t r = 0; r < kRows; ++r) {
      std::copy_n(y_ + size_t(r) * stride_, cols_, tile_ + r * kPanelColumns);
    }
  }
  ~Target() {
    if (cols_ == kPanelColumns) return;
    for (int32_t r = 0; r < kRows; ++r) {
      std::copy_n(tile_ + r * kPanelColumns, cols_, y_ + size_t(r) * stride_);
    }
  }
  float* Row(int32_t r) {
    return cols_ == kPanelColumns ? y_ + size_t(r) * stride_
                                  : tile_ + r * kPanelColumns;
  }

 private:
  const int32_t cols_;
  float* const y_;
  const size_t stride_;
  HWY_ALIGN float tile_[kRows * kPanelColumns];
};

// Rows [row, row + kRows) times a panel of int8.
template <int32_t kRows, int32_t kVectors>
HWY_NOINLINE void Int8Rows(const IntegerPanel& p, int32_t row) {
  const FloatTag d;
  Target<kRows> target(p, row, /*load=*/false);
  const int8_t* x = p.x + row * p.x_stride;
  const int32_t num_lines = p.num_groups * kGroupLines;
  for (int32_t c = 0; c < p.cols; c += kVectors * kLanes) {
    I acc[kRows][kVectors];
    for (int32_t r = 0; r < kRows; ++r) {
      // Codes are 128 too great.
      for (I& a : acc[r]) a = hn::Set(IntTag(), -128 * p.row_sums[row + r]);
    }
    const uint8_t* codes = p.panel + size_t(c) * 4;
    for (int32_t line = 0; line < num_lines; ++line) {
      DotInt8Line<kRows, kVectors>(codes + line * kLineBytes,
                                   x + size_t(line) * 4, p.x_stride, acc);
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

// f[kRows][kVectors] += a group's step (and minimum) times its exact sums.
template <int32_t kRows, int32_t kVectors, bool kAffine>
HWY_INLINE void AddGroup(const uint8_t* steps, const int32_t* group_sums,
                         int32_t num_groups, const I (&acc)[kRows][kVectors],
                         V (&f)[kRows][kVectors]) {
  const FloatTag d;
  for (int32_t v = 0; v < kVectors; ++v) {
    const V step = LoadF16(steps + size_t(v) * kLanes * 2);
    for (int32_t r = 0; r < kRows; ++r) {
      f[r][v] = hn::MulAdd(hn::ConvertTo(d, acc[r][v]), step, f[r][v]);
    }
    if constexpr (kAffine) {
      const V minimum = LoadF16(steps + kF16LineBytes + size_t(v) * kLanes * 2);
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
template <int32_t kRows, int32_t kVectors, bool kAffine>
HWY_NOINLINE void Int4Rows(const IntegerPanel& p, const Groups& groups,
                           int32_t row) {
  const FloatTag d;
  const bool is_first = groups.first == 0;
  const bool is_last = groups.first + groups.count == p.num_groups;
  Target<kRows> target(p, row, /*load=*/!is_first);
  for (int32_t c = 0; c < p.cols; c += kVectors * kLanes) {
    V f[kRows][kVectors];
    for (int32_t r = 0; r < kRows; ++r) {
      for (int32_t v = 0; v < kVectors; ++v) {
        f[r][v] = is_first ? hn::Zero(d)
                           : hn::LoadU(d, target.Row(r) + c + v * kLanes);
      }
    }
    for (int32_t i = 0; i < groups.count; ++i) {
      const int32_t g = groups.first + i;
      const uint8_t* const group = p.panel + g * p.group_bytes;
      const int32_t* const sums = p.group_sums + size_t(row) * p.num_groups + g;
      const int8_t* const x = p.x + row * p.x_stride + size_t(g) * kGroup;
      I acc[kRows][kVectors];
      for (int32_t r = 0; r < kRows; ++r) {
        // On a symmetric grid codes are 8 too great.
        const int32_t start = kAffine ? 0 : -8 * sums[size_t(r) * p.num_groups];
        for (I& a : acc[r]) a = hn::Set(IntTag(), start);
      }
      if (groups.codes == nullptr) {
        DotInt4Group<kRows, kVectors>(group + size_t(c) * 4, x, p.x_stride,
                                      acc);
      } else {
        const uint8_t* codes =
            groups.codes + i * kInt8GroupBytes + size_t(c) * 4;
        for (int32_t line = 0; line < kGroupLines; ++line) {
          DotInt8Line<kRows, kVectors>(codes + line * kLineBytes, x + line * 4,
                                       p.x_stride, acc);
        }
      }
      AddGroup<kRows, kVectors, kAffine>(group + kInt4CodeBytes + size_t(c) * 2,
                                         sums, p.num_groups, acc, f);
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

// Calls body<count>(row) for pieces of [0, rows) of at most kMost rows.
template <int32_t kMost, typename Body>
HWY_INLINE void InPieces(int32_t rows, const Body& body) {
  int32_t row = 0;
  for (; row + kMost <= rows; row += kMost) {
    body.template operator()<kMost>(row);
  }
  switch (rows - row) {
    case 5:
      return body.template operator()<std::min(5, kMost)>(row);
    case 4:
      return body.template operator()<std::min(4, kMost)>(row);
    case 3:
      return body.template operator()<std::min(3, kMost)>(row);
    case 2:
      return body.template operator()<std::min(2, kMost)>(row);
    case 1:
      return body.template operator()<1>(row);
    default:
      return;
  }
}

template <int32_t kVectors>
void MultiplyInt8(const IntegerPanel& p) {
  InPieces<kInt8Rows>(p.rows, [&]<int32_t kRows>(int32_t row) {
    Int8Rows<kRows, kVectors>(p, row);
  });
}

void Int8Panel(const IntegerPanel& p) {
  if (p.cols <= kHalfVectors * kLanes) {
    MultiplyInt8<kHalfVectors>(p);
  } else {
    MultiplyInt8<kVectors>(p);
  }
}

template <int32_t kVectors>
void MultiplyInt4(const IntegerPanel& p, const Groups& groups) {
  InPieces<kInt4Rows>(p.rows, [&]<int32_t kRows>(int32_t row) {
    if (p.affine) {
      Int4Rows<kRows, kVectors, true>(p, groups, row);
    } else {
      Int4Rows<kRows, kVectors, false>(p, groups, row);
    }
  });
}

void MultiplyInt4Groups(const IntegerPanel& p, const Groups& groups) {
  if (p.cols <= kHalfVectors * kLanes) {
    MultiplyInt4<kHalfVectors>(p, groups);
  } else {
    MultiplyInt4<kVectors>(p, groups);
  }
}

// Codes of int4 as int8 has them.
HWY_INLINE void SpreadCodes(const IntegerPanel& p, int32_t first, int32_t count,
                            uint8_t* out) {
  for (int32_t g = 0; g < count; ++g) {
    const uint8_t* codes = p.panel + (first + g) * p.group_bytes;
    for (size_t i = 0; i < kInt4CodeBytes; i += size_t(kLanes) * 4) {
      const Halves halves = Split(LoadCodes(codes + i));
      StoreCodes(halves.low, out + i);
      StoreCodes(halves.high, out + kInt4CodeBytes + i);
    }
    out += kInt8GroupBytes;
  }
}

bool HasDotProducts() { return HWY_TARGET == HWY_AVX3_DL; }

void Int4Panel(const IntegerPanel& p) {
  if (p.rows <= kInt4Rows) {
    return MultiplyInt4Groups(p, {0, p.num_groups, nullptr});
  }
  HWY_ALIGN uint8_t codes[kChunkGroups * kInt8GroupBytes];
  for (int32_t first = 0; first < p.num_groups; first += kChunkGroups) {
    const int32_t count = std::min(kChunkGroups, p.num_groups - first);
    SpreadCodes(p, first, count, codes);
    MultiplyInt4Groups(p, {first, count, codes});
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
HWY_EXPORT(HasDotProducts);
}  // namespace

void MultiplyInt8Panel(const IntegerPanel& panel) {
  HWY_DYNAMIC_DISPATCH(Int8Panel)(panel);
}

void MultiplyInt4Panel(const IntegerPanel& panel) {
  HWY_DYNAMIC_DISPATCH(Int4Panel)(panel);
}

bool HasInt8DotProducts() { return HWY_DYNAMIC_DISPATCH(HasDotProducts)(); }

}  // namespace folio
#endif  // HWY_ONCE
