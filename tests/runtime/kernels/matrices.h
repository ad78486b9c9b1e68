// What the tests of kernels put in and take out.

#ifndef TESTS_RUNTIME_KERNELS_MATRICES_H_
#define TESTS_RUNTIME_KERNELS_MATRICES_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/base/element_type.h"
#include "runtime/kernels/activations.h"
#include "runtime/kernels/bf16.h"
#include "runtime/kernels/column_blocks.h"

namespace folio {

inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// As a type keeps them: f32 changes nothing. bf16_test checks ToBf16.
inline std::vector<float> Rounded(std::span<const float> values,
                                  ElementType type) {
  std::vector<float> rounded(values.begin(), values.end());
  if (type == ElementType::kBf16) {
    for (float& value : rounded) value = FromBf16(ToBf16(value));
  }
  return rounded;
}

// [values.size() / cuts.back(), cuts.back()] from row-major values.
inline ColumnBlocks Blocks(std::span<const float> values,
                           std::vector<int32_t> cuts) {
  const int32_t cols = cuts.back();
  const int32_t rows = static_cast<int32_t>(values.size() / cols);
  ColumnBlocks blocks(rows, std::move(cuts));
  for (int32_t b = 0; b < blocks.num_blocks(); ++b) {
    const int32_t width = blocks.block_cols(b);
    for (int32_t r = 0; r < rows; ++r) {
      const float* source =
          values.data() + size_t(r) * cols + blocks.first_column(b);
      std::copy_n(source, width, blocks.block_data(b) + size_t(r) * width);
    }
  }
  return blocks;
}

inline ColumnBlocks EvenBlocks(std::span<const float> values, int32_t cols,
                               int32_t num_blocks) {
  return Blocks(values, ColumnBlocks::EvenCuts(cols, num_blocks));
}

// Writes `values`, rounded, over the rows from `first` on.
inline void SetRows(Activations& matrix, int32_t first,
                    std::span<const float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (matrix.type() == ElementType::kF32) {
      matrix.RowAs<float>(first)[i] = values[i];
    } else {
      matrix.RowAs<uint16_t>(first)[i] = ToBf16(values[i]);
    }
  }
}

// The first `rows` rows as floats, row-major.
inline std::vector<float> Values(Activations& matrix, int32_t rows) {
  std::vector<float> values(size_t(rows) * matrix.cols());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = matrix.type() == ElementType::kF32
                    ? matrix.RowAs<float>(0)[i]
                    : FromBf16(matrix.RowAs<uint16_t>(0)[i]);
  }
  return values;
}

// ToBf16 of f32's values are bf16's bits, all rows of both.
inline bool IsRounded(Activations& bf16, Activations& f32) {
  const size_t size = size_t(f32.max_rows()) * f32.cols();
  const float* values = f32.RowAs<float>(0);
  return std::equal(
      values, values + size, bf16.RowAs<uint16_t>(0),
      bf16.RowAs<uint16_t>(0) + size,
      [](float value, uint16_t bits) { return ToBf16(value) == bits; });
}

}  // namespace folio

#endif  // TESTS_RUNTIME_KERNELS_MATRICES_H_
