// What a matrix product reads.

#ifndef RUNTIME_KERNELS_ACTIVATIONS_H_
#define RUNTIME_KERNELS_ACTIVATIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/base/element_type.h"
#include "runtime/kernels/aligned_array.h"

namespace folio {

// A [max_rows, cols] matrix in the type that its products read. Kernels write a
// row as floats between BeginRow and EndRow, which rounds it:
//
//   f32   nothing to do.
//   bf16  to nearest, ties to even; NaN stays NaN. Without dot products of bf16
//         they are kept as floats.
//   int8  x = scale * q with q = round(x / scale) from -127 to 127 and
//         scale = max |x| / 127, one for each row (as "per-token" in Yao et
//         al., "ZeroQuant", 2022). The scale of a row that holds NaN or an
//         infinity is NaN: so is whatever is made of it. Rows whose greatest
//         element is below 1e-30 become zeros.
//
// Values start at 0.
class Activations {
 public:
  // Columns whose sums weights of int4 need; rows of int8 are padded to whole
  // groups with zeros.
  static constexpr int32_t kGroup = 32;

  // So many products of two int8 add up within an int32.
  static constexpr int32_t kMaxInt8Cols = 1 << 17;

  // `weights` is the type of those that the matrix will meet; `num_workers`
  // that of the Executor whose workers write rows.
  Activations(ElementType weights, int32_t max_rows, int32_t cols,
              int num_workers);

  ElementType type() const { return type_; }
  int32_t max_rows() const { return max_rows_; }
  int32_t cols() const { return cols_; }

  // Where to write row `row`; then EndRow makes it readable. A worker writes
  // one row at a time.
  float* BeginRow(int32_t row, int worker) {
    return rows_are_floats_ ? reinterpret_cast<float*>(MutableRow(row))
                            : scratch_[worker].data();
  }
  void EndRow(int32_t row, int worker);

  // Row `row`: floats, the bits of bf16, or int8_t. Rows are row_bytes() apart,
  // with zeros up to a whole pair of bf16, or group of int8.
  bool rows_are_floats() const { return rows_are_floats_; }
  const std::byte* row(int32_t row) const {
    return data_.data() + row * row_bytes_;
  }
  size_t row_bytes() const { return row_bytes_; }

  // Of int8 only: the scales of all rows, the sums of all of a row's elements,
  // and, for weights of int4, of each kGroup of them.
  const float* scales() const { return scales_.data(); }
  const int32_t* row_sums() const { return row_sums_.data(); }
  bool has_group_sums() const { return group_sums_.size() > 0; }
  const int32_t* group_sums(int32_t row) const {
    return group_sums_.data() + size_t(row) * num_groups();
  }
  int32_t num_groups() const { return (cols_ + kGroup - 1) / kGroup; }

 private:
  std::byte* MutableRow(int32_t row) { return data_.data() + row * row_bytes_; }

  ElementType type_;
  bool rows_are_floats_;
  int32_t max_rows_;
  int32_t cols_;
  size_t row_bytes_;
  AlignedArray<std::byte> data_;
  AlignedArray<float> scales_;
  AlignedArray<int32_t> row_sums_;
  AlignedArray<int32_t> group_sums_;  // [max_rows][num_groups()], or none
  // One row for each worker, padded as rows of int8 are; none for floats.
  std::vector<AlignedArray<float>> scratch_;
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_ACTIVATIONS_H_
