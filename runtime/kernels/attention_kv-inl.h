// A block of keys and values as the products of attention take them, on each of
// Highway's targets. Include after foreach_target.h.

#if defined(RUNTIME_KERNELS_ATTENTION_KV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNTIME_KERNELS_ATTENTION_KV_INL_H_
#undef RUNTIME_KERNELS_ATTENTION_KV_INL_H_
#else
#define RUNTIME_KERNELS_ATTENTION_KV_INL_H_
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

// Positions whose keys lie together: as many as the most lanes of a vector.
constexpr int32_t kGroup = 16;

// Positions [begin, end) of a block.
struct Range {
  bool IsEmpty() const { return begin >= end; }

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

// What any line of the tile sees of the block at `start`.
HWY_INLINE Range SeenByAny(const AttentionTile& tile, int32_t start) {
  return InBlock(FirstSeen(tile, tile.first_position),
                 tile.first_position + tile.num_rows, start);
}

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

// Asks for the K/V of a block before they are needed: the hardware does not
// foresee the jump from page to page. It is done evenly, while the block before
// is attended to, since all at once would be more than can be waited for
// without stopping, and memory should not rest in between: three quarters with
// the products, a piece with each of their rows, and a quarter with the
// softmax.
class Prefetcher {
 public:
  // Three quarters of what a row of the products reads.
  static constexpr int32_t kBytesAtOnce = kBlock * sizeof(uint32_t) / 4 * 3;

  // Of the block at `start`; asks for its scales, if there are any.
  // `pieces` has room for MostPieces.
  Prefetcher(const AttentionTile& tile, int32_t start, const std::byte** pieces)
      : pieces_(pieces) {
    const PagedKv& kv = tile.kv;
    const int32_t row_bytes = tile.head_dim * BytesOf(kv.type);
    const int32_t key_stride = kv.page_size * int32_t{sizeof(uint32_t)};
    const int32_t key_bytes = (row_bytes + 3) / 4 * key_stride;
    ForEachPage(
        tile, start, SeenByAny(tile, start),
        [&](const std::byte* page, int32_t slot, int32_t, int32_t count) {
          const std::byte* const keys = page + kv.key_offset;
          if (kv.page_size <= kBlock) {
            Add(keys, key_bytes);
          } else {
            for (int32_t row = 0; row < key_bytes; row += key_stride) {
              Add(keys + row + slot * sizeof(uint32_t),
                  count * sizeof(uint32_t));
            }
          }
          Add(page + kv.value_offset + slot * row_bytes, count * row_bytes);
          if (kv.type != ElementType::kInt8) return;
          hwy::Prefetch(page + kv.key_scale_offset + slot * sizeof(float));
          hwy::Prefetch(page + kv.value_scale_offset + slot * sizeof(float));
        });
  }

  // Those of a tile, too, which another worker may have written.
  void AddQueries(const AttentionTile& tile) {
    const int32_t row_bytes =
        tile.group * tile.head_dim * static_cast<int32_t>(sizeof(float));
    for (int32_t row = 0; row < tile.num_rows; ++row) {
      Add(reinterpret_cast<const std::byte*>(tile.q +
                                             size_t(row) * tile.q_stride),
          row_bytes);
    }
  }

  // The number of the first of the next `count` pieces, for a loop that asks
  // for one in each turn.
  HWY_INLINE size_t Take(size_t count) {
    const size_t first = taken_;
    taken_ += count;
    return first;
  }
  // REQUIRES: it was taken. There may be no such piece.
  HWY_INLINE void AskFor(size_t piece) const {
    if (piece >= size_) return;
    for (int32_t i = 0; i < kBytesAtOnce; i += kCacheLineBytes) {
      hwy::Prefetch(pieces_[piece] + i);
    }
  }
  size_t size() const { return size_; }

  HWY_INLINE void AskForNext(size_t count) {
    const size_t first = Take(count);
    for (size_t i = 0; i < count; ++i) AskFor(first + i);
  }
  void AskForRest() {
    while (taken_ < size_) AskForNext(1);
  }

 private:
  void Add(const std::byte* begin, int32_t size) {
    for (int32_t i = 0; i < size; i += kBytesAtOnce) {
      pieces_[size_++] = begin + i;
    }
  }

  const std::byte** const pieces_;
  size_t size_ = 0;
  size_t taken_ = 0;
};

// The scales of the rows of a block in pages of int8; 0 where no line sees
// them.
HWY_INLINE void LoadScales(const AttentionTile& tile, int32_t start, Range seen,
                           float* key_scales, float* value_scales) {
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
}

// The right matrix of the scores: keys, [dword of a row][position]. Those of
// positions that no line sees may be anything.
struct BlockKeys {
  HWY_INLINE const uint32_t* At(size_t row, size_t position) const {
    return groups[position / kGroup] + row * stride + position % kGroup;
  }

  const uint32_t* groups[kBlock / kGroup];  // Row 0 of each.
  size_t stride;                            // From row to row, in dwords.
};

// The right matrix of the weighted values, which has a row for each position,
// or for two with pairs of bf16. Only those that any line sees are there.
struct BlockValues {
  HWY_INLINE const uint32_t* At(size_t row, size_t column) const {
    return rows[row] + column;
  }

  const uint32_t* rows[kBlock];
};

// (Nothing need be aligned: it is only read by LoadU and memcpy.)
HWY_INLINE const uint32_t* AsDwords(const std::byte* bytes) {
  return reinterpret_cast<const uint32_t*>(bytes);
}

// Finds the keys of a block in their pages; where a group would not lie in one
// page, in `copy`, [num_dwords][kBlock].
HWY_INLINE BlockKeys FindKeys(const AttentionTile& tile, int32_t start,
                              Range seen, size_t num_dwords, uint32_t* copy) {
  BlockKeys keys;
  const int32_t page_size = tile.kv.page_size;
  const auto of_page = [&](const std::byte* page) {
    return AsDwords(page + tile.kv.key_offset);
  };
  if (page_size % kGroup != 0) {
    ForEachPage(
        tile, start, seen,
        [&](const std::byte* page, int32_t slot, int32_t j, int32_t count) {
          for (size_t row = 0; row < num_dwords; ++row) {
            std::memcpy(copy + row * kBlock + j,
                        of_page(page) + row * page_size + slot,
                        count * sizeof(uint32_t));
          }
        });
    for (int32_t i = 0; i < kBlock / kGroup; ++i) {
      keys.groups[i] = copy + i * kGroup;
    }
    keys.stride = kBlock;
    return keys;
  }
  keys.stride = page_size;
  for (int32_t i = seen.begin / kGroup; i * kGroup < seen.end; ++i) {
    const int32_t position = start + i * kGroup;
    keys.groups[i] =
        of_page(tile.pages[position / page_size]) + position % page_size;
  }
  return keys;
}

// Element `i` of each dword of elements of T. (An int8 is exact as bf16.)
template <typename T, int32_t i>
HWY_INLINE V Widened(WordV dwords) {
  if constexpr (sizeof(T) == sizeof(uint16_t)) {
    return hn::BitCast(FloatTag(),
                       i == 0 ? hn::ShiftLeft<16>(dwords)
                              : hn::And(dwords, hn::Set(Words(), 0xFFFF0000u)));
  } else {
    const hn::RebindToSigned<FloatTag> numbers;
    return hn::ConvertTo(FloatTag(),
                         hn::ShiftRight<24>(hn::BitCast(
                             numbers, hn::ShiftLeft<24 - 8 * i>(dwords))));
  }
}

// Elements 0 to kCount - 1 of something, each in a vector of its own, as rows
// of dwords of P, `stride` apart.
template <class P, int32_t kCount>
HWY_INLINE void PutDwords(const V (&elements)[kCount], size_t stride,
                          uint32_t* to) {
  for (int32_t i = 0; i < kCount; i += P::kElementsPerDword) {
    WordV dwords = hn::BitCast(Words(), elements[i]);
    if constexpr (P::kElementsPerDword == 2) {
      dwords = hn::Or(hn::ShiftRight<16>(dwords),
                      hn::BitCast(Words(), elements[i + 1]));
    }
    hn::Store(dwords, Words(), to);
    to += stride;
  }
}

// Keys whose dwords have more elements, of T, than P takes become
// `widened`[dwords of P][kBlock].
template <class P, typename T>
HWY_INLINE BlockKeys WidenKeys(const BlockKeys& narrow, Range seen,
                               size_t num_dwords, uint32_t* widened) {
  constexpr int32_t kElements = sizeof(uint32_t) / sizeof(T);
  BlockKeys keys{.stride = kBlock};
  for (int32_t i = 0; i < kBlock / kGroup; ++i) {
    keys.groups[i] = widened + i * kGroup;
  }
  const int32_t begin = seen.begin / kGroup * kGroup;
  for (size_t dword = 0; dword < num_dwords; ++dword) {
    for (int32_t j = begin; j < seen.end; j += kLanes) {
      const WordV from = hn::LoadU(Words(), narrow.At(dword, j));
      V elements[kElements] = {Widened<T, 0>(from), Widened<T, 1>(from)};
      if constexpr (kElements == 4) {
        elements[2] = Widened<T, 2>(from);
        elements[3] = Widened<T, 3>(from);
      }
      PutDwords<P, kElements>(elements, kBlock, widened + j);
    }
    widened += kElements / P::kElementsPerDword * kBlock;
  }
  return keys;
}

// Copies a row of values to `to`, with zeros up to padded_dim, and where it is
// a pair of which only one is seen, in place of the other.
HWY_INLINE const uint32_t* CopyRow(const uint32_t* row, size_t head_dim,
                                   size_t padded_dim, uint32_t mask,
                                   uint32_t* to) {
  std::memcpy(to, row, head_dim * sizeof(uint32_t));
  std::fill(to + head_dim, to + padded_dim, 0u);
  for (size_t i = 0; i < head_dim; ++i) to[i] &= mask;
  return to;
}

// Finds the values of a block in their pages of f32 or bf16. Rows that are not
// whole vectors, and pairs of which only one is seen (the other may be no
// number), are copied, to `copies`, [rows][padded_dim].
template <typename T>
HWY_INLINE BlockValues FindValues(const AttentionTile& tile, int32_t start,
                                  Range seen, size_t padded_dim,
                                  uint32_t* copies) {
  constexpr int32_t kStep = sizeof(uint32_t) / sizeof(T);
  BlockValues values;
  const auto copy = [&](int32_t row, uint32_t mask) {
    values.rows[row] = CopyRow(values.rows[row], tile.head_dim, padded_dim,
                               mask, copies + row * padded_dim);
  };
  const bool whole_vectors = padded_dim == size_t(tile.head_dim);
  ForEachPage(
      tile, start, seen,
      [&](const std::byte* page, int32_t slot, int32_t j, int32_t count) {
        const uint32_t* row = AsDwords(page + tile.kv.value_offset) +
                              size_t(slot / kStep) * tile.head_dim;
        for (int32_t i = j / kStep; i * kStep < j + count; ++i) {
          values.rows[i] = row;
          row += tile.head_dim;
          if (!whole_vectors) copy(i, ~0u);
        }
      });
  if (kStep == 1) return values;
  if (seen.begin % 2 != 0) copy(seen.begin / 2, 0xFFFF0000u);
  if (seen.end % 2 != 0) copy(seen.end / 2, 0x0000FFFFu);
  return values;
}

// Values whose dwords have those of two positions become floats, in
// `widened`[kBlock][padded_dim]. Where no line sees them they may be anything.
HWY_INLINE BlockValues WidenPairs(const AttentionTile& tile, int32_t start,
                                  Range seen, size_t padded_dim,
                                  uint32_t* widened) {
  BlockValues values;
  ForEachPage(
      tile, start, seen,
      [&](const std::byte* page, int32_t slot, int32_t j, int32_t count) {
        const auto* row =
            reinterpret_cast<const float*>(page + tile.kv.value_offset) +
            size_t(slot / 2) * tile.head_dim;
        for (int32_t i = j / 2 * 2; i < j + count; i += 2) {
          uint32_t* const to = widened + i * padded_dim;
          values.rows[i] = to;
          values.rows[i + 1] = to + padded_dim;
          ForEachPiece(tile.head_dim, [&](size_t c, size_t n) {
            const WordV from = hn::BitCast(Words(), LoadPart(row + c, n));
            PutDwords<FloatDots, 2>(
                {Widened<uint16_t, 0>(from), Widened<uint16_t, 1>(from)},
                padded_dim, to + c);
          });
          row += tile.head_dim;
        }
      });
  return values;
}

// Values of int8 as P takes them, in `widened`[dwords of P][padded_dim]; 0
// where no line sees them. `zeros` is a row of them.
template <class P>
HWY_INLINE BlockValues WidenBytes(const AttentionTile& tile, int32_t start,
                                  Range seen, size_t padded_dim,
                                  const int8_t* zeros, uint32_t* widened) {
  constexpr int32_t kStep = P::kElementsPerDword;
  const size_t head_dim = tile.head_dim;
  const int8_t* rows[kBlock];
  rows[seen.begin / 2 * 2] = zeros;
  rows[(seen.end - 1) / 2 * 2 + 1] = zeros;
  ForEachPage(
      tile, start, seen,
      [&](const std::byte* page, int32_t slot, int32_t j, int32_t count) {
        const auto* const values =
            reinterpret_cast<const int8_t*>(page + tile.kv.value_offset);
        for (int32_t i = 0; i < count; ++i) {
          rows[j + i] = values + (slot + i) * head_dim;
        }
      });
  BlockValues values;
  for (int32_t j = seen.begin / kStep * kStep; j < seen.end; j += kStep) {
    uint32_t* const to = widened + j / kStep * padded_dim;
    values.rows[j / kStep] = to;
    ForEachPiece(head_dim, [&](size_t i, size_t n) {
      V elements[kStep];
      for (int32_t k = 0; k < kStep; ++k) {
        elements[k] = LoadPart(rows[j + k] + i, n);
      }
      PutDwords<P, kStep>(elements, padded_dim, to + i);
    });
  }
  return values;
}

}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#endif  // RUNTIME_KERNELS_ATTENTION_KV_INL_H_
