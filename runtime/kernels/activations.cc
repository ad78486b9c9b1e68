#include "runtime/kernels/activations.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/activations.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/instruction_set.h"
#include "runtime/kernels/quantise-inl.h"

// Compiled once for each target; what does not depend on it, once.
#ifndef RUNTIME_KERNELS_ACTIVATIONS_CC_ONCE
#define RUNTIME_KERNELS_ACTIVATIONS_CC_ONCE
namespace folio {
namespace {
struct ScaleAndSum {
  float scale;
  int32_t sum;
};
}  // namespace
}  // namespace folio
#endif

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {
namespace {

void RoundRow(const float* row, size_t size, uint16_t* out) {
  ForEachPiece(size, [&](size_t i, size_t n) {
    StorePart(LoadPart(row + i, n), out + i, n);
  });
}

void RoundFloats(size_t size, float* row) {
  ForEachPiece(size, [&](size_t i, size_t n) {
    StorePart(RoundToBf16(LoadPart(row + i, n)), row + i, n);
  });
}

// Returns the scale and the sum of all. REQUIRES: whole groups.
ScaleAndSum QuantiseRow(const float* row, size_t size, int8_t* out) {
  const RowQuantiser quantiser(row, size);
  const RowQuantiser::Int32 ints;
  auto sum = hn::Zero(ints);
  for (size_t i = 0; i < size; i += kLanes) {
    sum = hn::Add(sum, quantiser.Write(row + i, out + i));
  }
  return {quantiser.scale(), hn::GetLane(hn::SumOfLanes(ints, sum))};
}

void SumGroups(const int8_t* row, size_t size, int32_t* sums) {
  const hn::RebindToSigned<FloatTag> ints;
  const hn::Rebind<int8_t, FloatTag> bytes;
  for (size_t group = 0; group < size; group += Activations::kGroup) {
    auto sum = hn::Zero(ints);
    for (size_t i = group; i < group + Activations::kGroup; i += kLanes) {
      sum = hn::Add(sum, hn::PromoteTo(ints, hn::LoadU(bytes, row + i)));
    }
    *sums++ = hn::GetLane(hn::SumOfLanes(ints, sum));
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace folio {
namespace {

HWY_EXPORT(RoundRow);
HWY_EXPORT(RoundFloats);
HWY_EXPORT(QuantiseRow);
HWY_EXPORT(SumGroups);

size_t PaddedCols(int32_t cols) {
  constexpr size_t kGroup = Activations::kGroup;
  return (cols + kGroup - 1) / kGroup * kGroup;
}

size_t RowBytes(ElementType type, bool floats, int32_t cols) {
  switch (type) {
    case ElementType::kInt8:
      return PaddedCols(cols);
    case ElementType::kBf16:
      return size_t(cols + cols % 2) *
             (floats ? sizeof(float) : sizeof(uint16_t));
    default:
      return cols * sizeof(float);
  }
}

// They are on one target alone. (Highway asks the processor each time, which is
// slow on a virtual one.)
bool AreThereDotProducts() {
  return HasBf16DotProducts() && (hwy::SupportedTargets() & HWY_AVX3_DL) != 0;
}

}  // namespace

Activations::Activations(ElementType weights, int32_t max_rows, int32_t cols,
                         int num_workers)
    : type_(ActivationTypeFor(weights)),
      rows_are_floats_(type_ == ElementType::kF32 ||
                       (type_ == ElementType::kBf16 && !AreThereDotProducts())),
      max_rows_(max_rows),
      cols_(cols),
      row_bytes_(RowBytes(type_, rows_are_floats_, cols)),
      data_(max_rows * row_bytes_) {
  if (rows_are_floats_) return;
  for (int worker = 0; worker < num_workers; ++worker) {
    scratch_.emplace_back(PaddedCols(cols));
  }
  if (type_ != ElementType::kInt8) return;
  scales_ = AlignedArray<float>(max_rows);
  row_sums_ = AlignedArray<int32_t>(max_rows);
  if (weights != ElementType::kInt4) return;
  group_sums_ = AlignedArray<int32_t>(size_t(max_rows) * num_groups());
}

void Activations::EndRow(int32_t row, int worker) {
  if (type_ == ElementType::kF32) return;
  std::byte* const out = MutableRow(row);
  if (rows_are_floats_) {
    HWY_DYNAMIC_DISPATCH(RoundFloats)(cols_, reinterpret_cast<float*>(out));
    return;
  }
  const float* const from = scratch_[worker].data();
  if (type_ == ElementType::kBf16) {
    HWY_DYNAMIC_DISPATCH(RoundRow)
    (from, cols_, reinterpret_cast<uint16_t*>(out));
    return;
  }
  int8_t* const codes = reinterpret_cast<int8_t*>(out);
  const auto [scale, sum] =
      HWY_DYNAMIC_DISPATCH(QuantiseRow)(from, row_bytes_, codes);
  scales_.data()[row] = scale;
  row_sums_.data()[row] = sum;
  if (!has_group_sums()) return;
  HWY_DYNAMIC_DISPATCH(SumGroups)
  (codes, row_bytes_, group_sums_.data() + size_t(row) * num_groups());
}

}  // namespace folio
#endif  // HWY_ONCE
