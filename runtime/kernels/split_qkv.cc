#include "runtime/kernels/split_qkv.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>

#include "runtime/kernels/aligned_array.h"
#include "runtime/kernels/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/split_qkv.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/quantise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {
namespace {

// to = from * scale * weight, as RmsNorm. They may be one.
void NormaliseHead(const float* from, const float* weight, size_t head_dim,
                   float epsilon, float* to) {
  const V scale = hn::Set(FloatTag(), RmsScale(from, head_dim, epsilon));
  ForEachPiece(head_dim, [&](size_t i, size_t n) {
    StorePart(
        hn::Mul(hn::Mul(LoadPart(from + i, n), scale), LoadPart(weight + i, n)),
        to + i, n);
  });
}

// They may be one.
void RotateHead(const float* from, const float* cosines, const float* sines,
                size_t num_pairs, float* to) {
  ForEachPiece(num_pairs, [&](size_t i, size_t n) {
    const V cosine = LoadPart(cosines + i, n);
    const V sine = LoadPart(sines + i, n);
    const V a = LoadPart(from + i, n);
    const V b = LoadPart(from + num_pairs + i, n);
    StorePart(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), to + i, n);
    StorePart(hn::MulAdd(a, sine, hn::Mul(b, cosine)), to + num_pairs + i, n);
  });
}

void RoundHead(const float* head, size_t head_dim, uint16_t* out) {
  ForEachPiece(head_dim, [&](size_t i, size_t n) {
    StorePart(LoadPart(head + i, n), out + i, n);
  });
}

// Writes every second element: the others belong to another token, which may be
// written at the same time.
void StoreEverySecond(const uint16_t* from, size_t size, uint16_t* to) {
  size_t i = 0;
#if HWY_TARGET <= HWY_AVX3 && HWY_TARGET != HWY_SCALAR
  // Stores with a mask touch nothing else on these targets.
  const hn::RebindToUnsigned<FloatTag> words;
  const hn::Rebind<uint16_t, FloatTag> halves;
  const hn::Repartition<uint16_t, FloatTag> elements;
  const auto first =
      hn::MaskFromVec(hn::BitCast(elements, hn::Set(words, 0xFFFFu)));
  for (; i + kLanes <= size; i += kLanes) {
    const auto spread = hn::PromoteTo(words, hn::LoadU(halves, from + i));
    hn::BlendedStore(hn::BitCast(elements, spread), first, elements,
                     to + 2 * i);
  }
#endif
  for (; i < size; ++i) to[2 * i] = from[i];
}

// Returns the scale. Writes whole vectors. REQUIRES: zeros follow the head, up
// to a whole vector.
float QuantiseHead(const float* head, size_t head_dim, int8_t* out) {
  const size_t size = (head_dim + kLanes - 1) / kLanes * kLanes;
  const RowQuantiser quantiser(head, size);
  for (size_t i = 0; i < size; i += kLanes) {
    quantiser.Write(head + i, out + i);
  }
  return quantiser.scale();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace folio {
namespace {

HWY_EXPORT(NormaliseHead);
HWY_EXPORT(RotateHead);
HWY_EXPORT(RoundHead);
HWY_EXPORT(StoreEverySecond);
HWY_EXPORT(QuantiseHead);

constexpr int32_t kDword = sizeof(uint32_t);

// One row's part of SplitQkv.
class RowSplitter {
 public:
  // `first_row` is the row that row 0 of `qkv` is of.
  RowSplitter(const ColumnBlocks& qkv, int32_t first_row,
              const AttentionShape& shape, const HeadTransforms& transforms,
              const PagedKv& kv)
      : qkv_(qkv),
        first_row_(first_row),
        shape_(shape),
        transforms_(transforms),
        kv_(kv) {}

  void Split(int32_t row, const KvSlot& slot, float* q) const {
    const int32_t d = shape_.head_dim;
    int32_t column = 0;
    alignas(kCacheLineBytes) float copy[kMaxHeadDim];
    for (int32_t h = 0; h < shape_.num_heads; ++h, column += d) {
      Transform(row, Head(row, column, copy), transforms_.q_norm,
                q + size_t(h) * d);
    }
    alignas(kCacheLineBytes) float key[kMaxHeadDim];
    ClearPadding(key);
    ClearPadding(copy);
    StoredRow stored;
    for (int32_t h = 0; h < shape_.num_kv_heads; ++h, column += d) {
      Transform(row, Head(row, column, copy), transforms_.k_norm, key);
      Round(key, stored);
      std::byte* const of_head = slot.page + h * kv_.head_stride;
      StoreKey(stored, of_head + kv_.key_offset, slot.slot);
      StoreScale(stored.scale, of_head + kv_.key_scale_offset, slot.slot);
    }
    for (int32_t h = 0; h < shape_.num_kv_heads; ++h, column += d) {
      Round(Head(row, column, copy), stored);
      std::byte* const of_head = slot.page + h * kv_.head_stride;
      StoreValue(stored, of_head + kv_.value_offset, slot.slot);
      StoreScale(stored.scale, of_head + kv_.value_scale_offset, slot.slot);
    }
  }

 private:
  // A head where it lies, if that is in one block and whole vectors, or copied.
  // (Copies cost more than their bytes: what was written in small pieces can't
  // be read in large ones until it has reached the cache.)
  const float* Head(int32_t row, int32_t column, float* copy) const {
    const size_t d = shape_.head_dim;
    const std::span<const float> rest = qkv_.RowFrom(row - first_row_, column);
    if (rest.size() >= d && d % ColumnBlocks::kCutMultiple == 0) {
      return rest.data();
    }
    qkv_.CopyRow(row - first_row_, column, {copy, d});
    return copy;
  }

  void ClearPadding(float* head) const {
    const int32_t end = shape_.head_dim + ColumnBlocks::kCutMultiple;
    std::fill(head + shape_.head_dim, head + std::min(end, kMaxHeadDim), 0.0f);
  }

  void Transform(int32_t row, const float* from, std::span<const float> norm,
                 float* to) const {
    if (!norm.empty()) {
      HWY_DYNAMIC_DISPATCH(NormaliseHead)
      (from, norm.data(), shape_.head_dim, transforms_.norm_epsilon, to);
      from = to;
    }
    if (const Rotary* rotary = transforms_.rotary; rotary != nullptr) {
      HWY_DYNAMIC_DISPATCH(RotateHead)
      (from, rotary->cosines(row), rotary->sines(row), rotary->num_pairs(), to);
      from = to;
    }
    if (from != to) std::copy_n(from, shape_.head_dim, to);
  }

  // A head in the type of K/V, and zeros up to a whole dword.
  struct StoredRow {
    alignas(kCacheLineBytes) std::byte elements[(kMaxHeadDim + 1) * 4];
    float scale = 0;  // Of int8.
  };

  // REQUIRES: zeros follow the head, up to a whole vector.
  void Round(const float* head, StoredRow& row) const {
    const int32_t d = shape_.head_dim;
    if (kv_.type == ElementType::kF32) {
      std::memcpy(row.elements, head, d * sizeof(float));
    } else if (kv_.type == ElementType::kBf16) {
      HWY_DYNAMIC_DISPATCH(RoundHead)
      (head, d, reinterpret_cast<uint16_t*>(row.elements));
    } else {
      row.scale = HWY_DYNAMIC_DISPATCH(QuantiseHead)(
          head, d, reinterpret_cast<int8_t*>(row.elements));
    }
    std::memset(row.elements + d * BytesOf(kv_.type), 0, kDword);
  }

  void StoreKey(const StoredRow& row, std::byte* keys, int32_t slot) const {
    const int32_t row_bytes = shape_.head_dim * BytesOf(kv_.type);
    std::byte* to = keys + slot * kDword;
    for (int32_t i = 0; i < row_bytes; i += kDword) {
      std::memcpy(to, row.elements + i, kDword);
      to += kv_.page_size * kDword;
    }
  }

  void StoreValue(const StoredRow& row, std::byte* values, int32_t slot) const {
    const size_t row_bytes = size_t(shape_.head_dim) * BytesOf(kv_.type);
    if (kv_.type != ElementType::kBf16) {
      std::memcpy(values + slot * row_bytes, row.elements, row_bytes);
      return;
    }
    HWY_DYNAMIC_DISPATCH(StoreEverySecond)
    (reinterpret_cast<const uint16_t*>(row.elements), shape_.head_dim,
     reinterpret_cast<uint16_t*>(values + slot / 2 * 2 * row_bytes) + slot % 2);
  }

  void StoreScale(float scale, std::byte* scales, int32_t slot) const {
    if (kv_.type != ElementType::kInt8) return;
    std::memcpy(scales + slot * sizeof(scale), &scale, sizeof(scale));
  }

  const ColumnBlocks& qkv_;
  const int32_t first_row_;
  const AttentionShape& shape_;
  const HeadTransforms& transforms_;
  const PagedKv& kv_;
};

}  // namespace

void SplitQkv(const ColumnBlocks& qkv, Rows rows, const AttentionShape& shape,
              const HeadTransforms& transforms, const PagedKv& kv,
              std::span<const KvSlot> slots, std::span<float> q,
              Executor& executor) {
  const size_t q_cols = size_t(shape.num_heads) * shape.head_dim;
  CHECK_EQ(kv.page_size % 8, 0);
  CHECK_LE(shape.head_dim, kMaxHeadDim);
  for (const auto& norm : {transforms.q_norm, transforms.k_norm}) {
    CHECK(norm.empty() || norm.size() == size_t(shape.head_dim));
  }
  if (transforms.rotary != nullptr) {
    CHECK_EQ(2 * transforms.rotary->num_pairs(), shape.head_dim);
  }
  CHECK_EQ(qkv.cols(),
           (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim);
  CHECK_GE(slots.size(), size_t(rows.end()));
  CHECK_GE(q.size(), rows.end() * q_cols);
  const RowSplitter splitter(qkv, rows.first, shape, transforms, kv);
  ParallelRows(executor, rows, [&](Rows some, int /*worker*/) {
    for (int32_t row = some.first; row < some.end(); ++row) {
      splitter.Split(row, slots[row], q.data() + row * q_cols);
    }
  });
}

}  // namespace folio
#endif  // HWY_ONCE
