#include "runtime/kernels/split_qkv.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>

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

// head = head * scale * weight, as RmsNorm.
void NormaliseHead(const float* weight, size_t head_dim, float epsilon,
                   float* head) {
  const V scale = hn::Set(FloatTag(), RmsScale(head, head_dim, epsilon));
  ForEachPiece(head_dim, [&](size_t i, size_t n) {
    StorePart(
        hn::Mul(hn::Mul(LoadPart(head + i, n), scale), LoadPart(weight + i, n)),
        head + i, n);
  });
}

void RotateHead(const float* cosines, const float* sines, size_t num_pairs,
                float* head) {
  float* const other = head + num_pairs;
  ForEachPiece(num_pairs, [&](size_t i, size_t n) {
    const V cosine = LoadPart(cosines + i, n);
    const V sine = LoadPart(sines + i, n);
    const V a = LoadPart(head + i, n);
    const V b = LoadPart(other + i, n);
    StorePart(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), head + i, n);
    StorePart(hn::MulAdd(a, sine, hn::Mul(b, cosine)), other + i, n);
  });
}

void RoundHead(const float* head, size_t head_dim, uint16_t* out) {
  ForEachPiece(head_dim, [&](size_t i, size_t n) {
    StorePart(LoadPart(head + i, n), out + i, n);
  });
}

// Returns the scale. REQUIRES: zeros follow the head, up to a whole vector.
float QuantiseHead(const float* head, size_t head_dim, std::byte* out) {
  const size_t size = (head_dim + kLanes - 1) / kLanes * kLanes;
  int8_t quantised[kMaxHeadDim];
  const RowQuantiser quantiser(head, size);
  for (size_t i = 0; i < size; i += kLanes) {
    quantiser.Write(head + i, quantised + i);
  }
  std::memcpy(out, quantised, head_dim);
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
HWY_EXPORT(QuantiseHead);

// One row's part of SplitQkv.
class RowSplitter {
 public:
  RowSplitter(const ColumnBlocks& qkv, const AttentionShape& shape,
              const HeadTransforms& transforms, const PagedKv& kv)
      : qkv_(qkv), shape_(shape), transforms_(transforms), kv_(kv) {}

  void Split(int32_t row, const KvSlot& slot, float* q) const {
    const int32_t d = shape_.head_dim;
    int32_t column = 0;
    for (int32_t h = 0; h < shape_.num_heads; ++h, column += d) {
      float* head = q + size_t(h) * d;
      qkv_.CopyRow(row, column, {head, size_t(d)});
      Transform(row, transforms_.q_norm, head);
    }
    float head[kMaxHeadDim] = {};
    for (int32_t h = 0; h < shape_.num_kv_heads; ++h, column += d) {
      qkv_.CopyRow(row, column, {head, size_t(d)});
      Transform(row, transforms_.k_norm, head);
      Store(head, slot, h, kv_.key_offset, kv_.key_scale_offset);
    }
    for (int32_t h = 0; h < shape_.num_kv_heads; ++h, column += d) {
      qkv_.CopyRow(row, column, {head, size_t(d)});
      Store(head, slot, h, kv_.value_offset, kv_.value_scale_offset);
    }
  }

 private:
  void Transform(int32_t row, std::span<const float> norm, float* head) const {
    if (!norm.empty()) {
      HWY_DYNAMIC_DISPATCH(NormaliseHead)
      (norm.data(), shape_.head_dim, transforms_.norm_epsilon, head);
    }
    if (const Rotary* rotary = transforms_.rotary; rotary != nullptr) {
      HWY_DYNAMIC_DISPATCH(RotateHead)
      (rotary->cosines(row), rotary->sines(row), rotary->num_pairs(), head);
    }
  }

  void Store(const float* head, const KvSlot& slot, int32_t kv_head,
             int64_t offset, int64_t scale_offset) const {
    const int64_t row_bytes = int64_t{shape_.head_dim} * BytesOf(kv_.type);
    std::byte* const place =
        slot.page + offset + kv_head * kv_.head_stride + slot.slot * row_bytes;
    if (kv_.type == ElementType::kF32) {
      std::memcpy(place, head, row_bytes);
    } else if (kv_.type == ElementType::kBf16) {
      HWY_DYNAMIC_DISPATCH(RoundHead)
      (head, shape_.head_dim, reinterpret_cast<uint16_t*>(place));
    } else {
      const float scale =
          HWY_DYNAMIC_DISPATCH(QuantiseHead)(head, shape_.head_dim, place);
      std::memcpy(slot.page + scale_offset + kv_head * kv_.scale_head_stride() +
                      slot.slot * sizeof(scale),
                  &scale, sizeof(scale));
    }
  }

  const ColumnBlocks& qkv_;
  const AttentionShape& shape_;
  const HeadTransforms& transforms_;
  const PagedKv& kv_;
};

}  // namespace

void SplitQkv(const ColumnBlocks& qkv, int32_t rows,
              const AttentionShape& shape, const HeadTransforms& transforms,
              const PagedKv& kv, std::span<const KvSlot> slots,
              std::span<float> q, Executor& executor) {
  const size_t q_cols = size_t(shape.num_heads) * shape.head_dim;
  CHECK_LE(shape.head_dim, kMaxHeadDim);
  for (const auto& norm : {transforms.q_norm, transforms.k_norm}) {
    CHECK(norm.empty() || norm.size() == size_t(shape.head_dim));
  }
  if (transforms.rotary != nullptr) {
    CHECK_EQ(2 * transforms.rotary->num_pairs(), shape.head_dim);
  }
  CHECK_EQ(qkv.cols(),
           (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim);
  CHECK_GE(slots.size(), size_t(rows));
  CHECK_GE(q.size(), rows * q_cols);
  const RowSplitter splitter(qkv, shape, transforms, kv);
  ParallelRows(executor, rows, [&](int32_t first, int32_t count, int) {
    for (int32_t row = first; row < first + count; ++row) {
      splitter.Split(row, slots[row], q.data() + row * q_cols);
    }
  });
}

}  // namespace folio
#endif  // HWY_ONCE
