#include "runtime/kernels/split_qkv.h"

#include <glog/logging.h>

#include <cmath>

#include "runtime/kernels/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/split_qkv.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/vectors-inl.h"

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

// One row's part of SplitQkv.
class RowSplitter {
 public:
  RowSplitter(const ColumnBlocks& qkv, const AttentionShape& shape,
              const HeadTransforms& transforms, const PagedKv& kv)
      : qkv_(qkv), shape_(shape), transforms_(transforms), kv_(kv) {}

  void Split(int32_t row, std::byte* kv_row, float* q) const {
    const int32_t d = shape_.head_dim;
    int32_t column = 0;
    for (int32_t h = 0; h < shape_.num_heads; ++h, column += d) {
      float* head = q + size_t(h) * d;
      qkv_.CopyRow(row, column, {head, size_t(d)});
      Transform(row, transforms_.q_norm, head);
    }
    for (int32_t h = 0; h < shape_.num_kv_heads; ++h, column += d) {
      float head[kMaxHeadDim];
      qkv_.CopyRow(row, column, {head, size_t(d)});
      Transform(row, transforms_.k_norm, head);
      Store(head, kv_row + kv_.key_offset + h * kv_.head_stride);
    }
    for (int32_t h = 0; h < shape_.num_kv_heads; ++h, column += d) {
      float head[kMaxHeadDim];
      qkv_.CopyRow(row, column, {head, size_t(d)});
      Store(head, kv_row + kv_.value_offset + h * kv_.head_stride);
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

  void Store(const float* head, std::byte* place) const {
    if (kv_.type == ElementType::kF32) {
      std::copy_n(head, shape_.head_dim, reinterpret_cast<float*>(place));
    } else {
      HWY_DYNAMIC_DISPATCH(RoundHead)
      (head, shape_.head_dim, reinterpret_cast<uint16_t*>(place));
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
              const PagedKv& kv, std::span<std::byte* const> kv_rows,
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
  CHECK_GE(kv_rows.size(), size_t(rows));
  CHECK_GE(q.size(), rows * q_cols);
  const RowSplitter splitter(qkv, shape, transforms, kv);
  ParallelRows(executor, rows, [&](int32_t first, int32_t count) {
    for (int32_t row = first; row < first + count; ++row) {
      splitter.Split(row, kv_rows[row], q.data() + row * q_cols);
    }
  });
}

}  // namespace folio
#endif  // HWY_ONCE
