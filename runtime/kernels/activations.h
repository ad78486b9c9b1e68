// What a matrix product reads.

#ifndef RUNTIME_KERNELS_ACTIVATIONS_H_
#define RUNTIME_KERNELS_ACTIVATIONS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/element_type.h"
#include "runtime/kernels/aligned_array.h"

namespace folio {

// A dense [max_rows, cols] matrix in the type of the weights that it will meet.
// Kernels that write one round to its type (to nearest, ties to even; NaN stays
// NaN). Values start at 0.
class Activations {
 public:
  Activations(ElementType type, int32_t max_rows, int32_t cols)
      : type_(type),
        max_rows_(max_rows),
        cols_(cols),
        data_(size_t(max_rows) * cols * BytesOf(type)) {}

  ElementType type() const { return type_; }
  int32_t max_rows() const { return max_rows_; }
  int32_t cols() const { return cols_; }

  const std::byte* row(int32_t row) const {
    return data_.data() + size_t(row) * cols_ * BytesOf(type_);
  }

  std::byte* MutableRow(int32_t row) {
    return data_.data() + size_t(row) * cols_ * BytesOf(type_);
  }

  // Row `row`, whose elements are of type T: float, or uint16_t for the bits of
  // bf16. REQUIRES: that is type().
  template <typename T>
  T* RowAs(int32_t row) {
    return reinterpret_cast<T*>(data_.data()) + size_t(row) * cols_;
  }

 private:
  ElementType type_;
  int32_t max_rows_;
  int32_t cols_;
  AlignedArray<std::byte> data_;
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_ACTIVATIONS_H_
