// From pages: keys and values of a block as the products of attention take
// them, on each of Highway's targets. Include after foreach_target.h.

#if defined(RUNTIME_KERNELS_ATTENTION_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNTIME_KERNELS_ATTENTION_PACK_INL_H_
#undef RUNTIME_KERNELS_ATTENTION_PACK_INL_H_
#else
#define RUNTIME_KERNELS_ATTENTION_PACK_INL_H_
#endif

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "runtime/kernels/aligned_array.h"
#include "runtime/kernels/attention_dots-inl.h"
#include "runtime/kernels/attention_tile.h"

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {

// Positions that one round of the online softmax takes.
constexpr int32_t kBlock = 64;

// Positions [begin, end) of a block.
struct Range {
  int32_t begin;
  int32_t end;
};

// The part of the block at `start` that positions [begin, end) have.
HWY_INLINE Range InBlock(int32_t begin, int32_t end, int32_t start) {
  return {std::clamp(begin - start, 0, kBlock),
          std::clamp(end - start, 0, kBlock)};
}

// The first position that the token at `position` sees.
HWY_INLINE int32_t FirstSeen(const AttentionTile& tile, int32_t position) {
  return position < tile.window ? 0 : position - tile.window + 1;
}

// Where the rows of a block begin. Those that no line sees are zeros: their
// place may hold anything, or not exist.
struct BlockRows {
  const std::byte* const* keys() const { return rows; }
  const std::byte* const* values() const { return rows + kBlock; }

  Range seen;                         // By any line of the tile.
  const std::byte* rows[2 * kBlock];  // Keys, then values.
};

// Calls body(page, first slot, j, count) for the pieces of positions
// [start + seen.begin, start + seen.end) that lie in one page.
template <typename Body>
HWY_INLINE void ForEachPage(const AttentionTile& tile, int32_t start,
                            Range seen, const Body& body) {
  int32_t page = (start + seen.begin) / tile.kv.page_size;
  int32_t slot = (start + seen.begin) % tile.kv.page_size;
  for (int32_t j = seen.begin; j < seen.end; ++page, slot = 0) {
    const int32_t count = std::min(tile.kv.page_size - slot, seen.end - j);
    body(tile.pages[page], slot, j, count);
    j += count;
  }
}

// Asks for the rows of a block before they are needed, a row now and then: the
// hardware does not foresee the jump from page to page, and all of them at once
// would be more than it can wait for without stopping.
class Prefetcher {
 public:
  Prefetcher(const BlockRows& block, size_t row_bytes)
      : next_(block.rows),
        end_(block.seen.begin < block.seen.end ? block.rows + 2 * kBlock
                                               : block.rows),
        row_bytes_(row_bytes) {}

  HWY_INLINE void AskForRow() {
    if (next_ == end_) return;
    const std::byte* const row = *next_++;
    for (size_t i = 0; i < row_bytes_; i += kCacheLineBytes) {
      hwy::Prefetch(row + i);
    }
  }
  void AskForRest() {
    while (next_ != end_) AskForRow();
  }

 private:
  const std::byte* const* next_;
  const std::byte* const* const end_;
  const size_t row_bytes_;
};

// Finds the rows of the block at `start`, and asks for its scales.
HWY_INLINE void FindRows(const AttentionTile& tile, int32_t start,
                         const std::byte* zeros, BlockRows& rows) {
  rows.seen = InBlock(FirstSeen(tile, tile.first_position),
                      tile.first_position + tile.num_rows, start);
  const auto set_zeros = [&](int32_t begin, int32_t end) {
    std::fill(rows.rows + begin, rows.rows + end, zeros);
    std::fill(rows.rows + kBlock + begin, rows.rows + kBlock + end, zeros);
  };
  set_zeros(0, rows.seen.begin);
  const int64_t row_bytes = int64_t{tile.head_dim} * BytesOf(tile.kv.type);
  ForEachPage(
      tile, start, rows.seen,
      [&](const std::byte* page, int32_t slot, int32_t j, int32_t count) {
        const std::byte* key = page + tile.kv.key_offset + slot * row_bytes;
        const std::byte* value = page + tile.kv.value_offset + slot * row_bytes;
        if (tile.kv.type == ElementType::kInt8) {
          hwy::Prefetch(page + tile.kv.key_scale_offset + slot * sizeof(float));
          hwy::Prefetch(page + tile.kv.value_scale_offset +
                        slot * sizeof(float));
        }
        for (int32_t i = 0; i < count; ++i) {
          rows.rows[j + i] = key + i * row_bytes;
          rows.rows[kBlock + j + i] = value + i * row_bytes;
        }
      });
  set_zeros(rows.seen.end, kBlock);
}

// The scales of the rows of a block in pages of int8, those of keys times
// `factor`; 0 where no line sees them.
HWY_INLINE void LoadScales(const AttentionTile& tile, int32_t start, Range seen,
                           float factor, float* key_scales,
                           float* value_scales) {
  std::fill_n(key_scales, kBlock, 0.0f);
  std::fill_n(value_scales, kBlock, 0.0f);
  ForEachPage(
      tile, start, seen,
      [&](const std::byte* page, int32_t slot, int32_t j, int32_t count) {
        const size_t place = slot * sizeof(float);
        const size_t size = count * sizeof(float);
        std::memcpy(key_scales + j, page + tile.kv.key_scale_offset + place,
                    size);
        std::memcpy(value_scales + j, page + tile.kv.value_scale_offset + place,
                    size);
      });
  const FloatTag d;
  for (int32_t j = 0; j < kBlock; j += kLanes) {
    hn::Store(hn::Mul(hn::Load(d, key_scales + j), hn::Set(d, factor)), d,
              key_scales + j);
  }
}

// Values of a block, only those that anyone sees, in rows of padded_dim dwords:
// one for each position with f32; with others one for positions j and j + 1,
// in pairs of bf16. How many columns are written at once, and padded_dim is a
// multiple of:
template <typename T>
constexpr size_t kPackedColumns = kLanes;
#if HWY_TARGET != HWY_SCALAR
template <>
inline constexpr size_t kPackedColumns<uint16_t> = 2 * kLanes;
#endif

HWY_INLINE void PackColumns(const float* row, const float*, uint32_t* packed) {
  hn::Store(hn::BitCast(Words(), hn::LoadU(FloatTag(), row)), Words(), packed);
}

// (An int8 is exact as bf16.)
HWY_INLINE WordV WidenToUpper(const int8_t* from) {
  const hn::RebindToSigned<FloatTag> numbers;
  const hn::Rebind<int8_t, FloatTag> bytes;
  const auto number = hn::PromoteTo(numbers, hn::LoadU(bytes, from));
  return hn::BitCast(Words(), hn::ConvertTo(FloatTag(), number));
}
HWY_INLINE void PackColumns(const int8_t* first, const int8_t* second,
                            uint32_t* packed) {
  hn::Store(
      hn::Or(hn::ShiftRight<16>(WidenToUpper(first)), WidenToUpper(second)),
      Words(), packed);
}

#if HWY_TARGET != HWY_SCALAR
// Interleaving goes by blocks of 128 bits: columns come in an order of their
// own, which OrderColumns undoes.
HWY_INLINE void PackColumns(const uint16_t* first, const uint16_t* second,
                            uint32_t* packed) {
  const hn::Repartition<uint16_t, FloatTag> halves;
  const auto a = hn::LoadU(halves, first);
  const auto b = hn::LoadU(halves, second);
  hn::Store(hn::BitCast(Words(), hn::InterleaveLower(halves, a, b)), Words(),
            packed);
  hn::Store(hn::BitCast(Words(), hn::InterleaveUpper(halves, a, b)), Words(),
            packed + kLanes);
}
#else
HWY_INLINE void PackColumns(const uint16_t* first, const uint16_t* second,
                            uint32_t* packed) {
  *packed = *first | uint32_t{*second} << 16;
}
#endif  // HWY_TARGET != HWY_SCALAR

// Puts sums of what PackColumns wrote into the order of columns.
template <typename T>
HWY_INLINE void OrderColumns(float* sums, size_t padded_dim) {
  constexpr size_t kColumns = kPackedColumns<T>;
  if constexpr (kColumns == kLanes || kLanes == 4) return;
  for (size_t column = 0; column < padded_dim; column += kColumns) {
    float copy[kColumns];
    std::copy_n(sums + column, kColumns, copy);
    for (size_t i = 0; i < kColumns; i += 8) {
      std::copy_n(copy + i / 2, 4, sums + column + i);
      std::copy_n(copy + kColumns / 2 + i / 2, 4, sums + column + i + 4);
    }
  }
}

template <typename T>
HWY_INLINE void PackValues(const BlockRows& rows, Prefetcher& prefetcher,
                           size_t head_dim, size_t padded_dim,
                           uint32_t* packed) {
  constexpr int32_t kStep = std::is_same_v<T, float> ? 1 : 2;
  constexpr size_t kColumns = kPackedColumns<T>;
  const size_t whole = head_dim / kColumns * kColumns;
  for (int32_t j = rows.seen.begin / kStep * kStep; j < rows.seen.end;
       j += kStep) {
    prefetcher.AskForRow();
    const T* first = reinterpret_cast<const T*>(rows.values()[j]);
    const T* second = reinterpret_cast<const T*>(rows.values()[j + kStep - 1]);
    uint32_t* const to = packed + j / kStep * padded_dim;
    for (size_t i = 0; i < whole; i += kColumns) {
      PackColumns(first + i, second + i, to + i);
    }
    if (whole == head_dim) continue;
    T rest[2][kColumns] = {};
    std::copy_n(first + whole, head_dim - whole, rest[0]);
    std::copy_n(second + whole, head_dim - whole, rest[1]);
    PackColumns(rest[0], rest[1], to + whole);
  }
}

#if HWY_TARGET != HWY_SCALAR
// Lanes 4 * b .. 4 * b + 3 come from rows[4 * b][column ..].
template <class D>
HWY_INLINE hn::Vec<D> LoadFourColumns(D d, const std::byte* const* rows,
                                      size_t column) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return hn::LoadU(d, reinterpret_cast<const uint32_t*>(rows[0]) + column);
  } else {
    const hn::Half<D> half;
    return hn::Combine(
        d, LoadFourColumns(half, rows + hn::MaxLanes(D()) / 2, column),
        LoadFourColumns(half, rows, column));
  }
}

// Writes columns [column, column + 4) of kLanes rows, transposed.
HWY_INLINE void TransposeFourColumns(const std::byte* const* rows,
                                     size_t column, uint32_t* out) {
  const Words d;
  const hn::RepartitionToWide<Words> pairs;
  const WordV a = LoadFourColumns(d, rows, column);
  const WordV b = LoadFourColumns(d, rows + 1, column);
  const WordV c = LoadFourColumns(d, rows + 2, column);
  const WordV e = LoadFourColumns(d, rows + 3, column);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  const auto store = [&](auto value, size_t i) {
    hn::Store(hn::BitCast(d, value), d, out + i * kBlock);
  };
  store(hn::InterleaveLower(pairs, ab_low, ce_low), 0);
  store(hn::InterleaveUpper(pairs, ab_low, ce_low), 1);
  store(hn::InterleaveLower(pairs, ab_high, ce_high), 2);
  store(hn::InterleaveUpper(pairs, ab_high, ce_high), 3);
}
#endif  // HWY_TARGET != HWY_SCALAR

// out[num_dwords][kBlock] from kBlock rows of num_dwords dwords, which need not
// be aligned.
HWY_INLINE void TransposeRows(const std::byte* const* rows,
                              Prefetcher& prefetcher, size_t num_dwords,
                              uint32_t* out) {
  size_t column = 0;
#if HWY_TARGET != HWY_SCALAR
  const size_t whole = num_dwords / 4 * 4;
  for (int32_t j = 0; j < kBlock; j += kLanes) {
    for (column = 0; column < whole; column += 4) {
      prefetcher.AskForRow();
      TransposeFourColumns(rows + j, column, out + column * kBlock + j);
    }
  }
#endif
  for (; column < num_dwords; ++column) {
    prefetcher.AskForRow();
    for (int32_t j = 0; j < kBlock; ++j) {
      std::memcpy(out + column * kBlock + j, rows[j] + column * 4, 4);
    }
  }
}

// Four int8 in each dword of quads[num_quads][kBlock] become two pairs of bf16:
// pairs[2 * num_quads][kBlock].
HWY_INLINE void WidenQuads(const uint32_t* quads, size_t num_quads,
                           uint32_t* pairs) {
  const hn::RebindToSigned<FloatTag> numbers;
  const auto widen = [&](auto byte_on_top) {
    return hn::BitCast(
        Words(), hn::ConvertTo(FloatTag(), hn::ShiftRight<24>(byte_on_top)));
  };
  for (size_t quad = 0; quad < num_quads; ++quad) {
    for (int32_t j = 0; j < kBlock; j += kLanes) {
      const auto four =
          hn::BitCast(numbers, hn::Load(Words(), quads + quad * kBlock + j));
      const WordV b0 = widen(hn::ShiftLeft<24>(four));
      const WordV b1 = widen(hn::ShiftLeft<16>(four));
      const WordV b2 = widen(hn::ShiftLeft<8>(four));
      const WordV b3 = widen(four);
      uint32_t* const to = pairs + 2 * quad * kBlock + j;
      hn::Store(hn::Or(hn::ShiftRight<16>(b0), b1), Words(), to);
      hn::Store(hn::Or(hn::ShiftRight<16>(b2), b3), Words(), to + kBlock);
    }
  }
}

// The keys of a block, transposed: packed[dwords of a key][kBlock]. Rows that
// are not whole dwords go by `copies`, kBlock rows of whole ones; int8 goes by
// `quads`, as many dwords as it has bytes.
template <typename T>
HWY_INLINE void PackKeys(const BlockRows& rows, Prefetcher& prefetcher,
                         size_t head_dim, std::byte* copies, uint32_t* quads,
                         uint32_t* packed) {
  const size_t row_bytes = head_dim * sizeof(T);
  const size_t dwords = (row_bytes + 3) / 4;
  const std::byte* whole[kBlock];
  if (row_bytes % 4 != 0) {
    for (int32_t j = 0; j < kBlock; ++j) {
      std::byte* const copy = copies + j * dwords * 4;
      std::memset(copy + (dwords - 1) * 4, 0, 4);
      std::memcpy(copy, rows.keys()[j], row_bytes);
      whole[j] = copy;
    }
  }
  const std::byte* const* from = row_bytes % 4 != 0 ? whole : rows.keys();
  if constexpr (std::is_same_v<T, int8_t>) {
    TransposeRows(from, prefetcher, dwords, quads);
    WidenQuads(quads, dwords, packed);
  } else {
    TransposeRows(from, prefetcher, dwords, packed);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#endif  // RUNTIME_KERNELS_ATTENTION_PACK_INL_H_
