// What the tests of kernels put in and take out.

#ifndef TESTS_RUNTIME_KERNELS_MATRICES_H_
#define TESTS_RUNTIME_KERNELS_MATRICES_H_

#include <algorithm>
#include <cmath>
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

// Numbers from -1 to 1 moved to ones that a type keeps exactly, in rows of
// `cols`. For integers those are q / 128 with 127 in each row, and q / 16 with
// -8 in each group of 32 of a row: then the scale is known, a power of two.
inline std::vector<float> OnGrid(std::span<const float> values, int32_t cols,
                                 ElementType type) {
  std::vector<float> grid = Rounded(values, type);
  if (!IsInteger(type)) return grid;
  for (size_t i = 0; i < grid.size(); ++i) {
    const size_t column = i % cols;
    if (type == ElementType::kInt8) {
      grid[i] = column == 0 ? 127 / 128.0f : std::round(grid[i] * 127) / 128;
    } else {
      grid[i] = column % 32 == 0 ? -8 / 16.0f
                                 : std::round(grid[i] * 7.5f - 0.5f) / 16;
    }
  }
  return grid;
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

// Writes whole rows, rounded, from row `first` on.
inline void SetRows(Activations& matrix, int32_t first,
                    std::span<const float> values) {
  const size_t cols = matrix.cols();
  for (size_t row = 0; row * cols < values.size(); ++row) {
    const int32_t place = first + static_cast<int32_t>(row);
    std::copy_n(values.data() + row * cols, cols, matrix.BeginRow(place, 0));
    matrix.EndRow(place, 0);
  }
}

// The first `rows` rows as floats, row-major.
inline std::vector<float> Values(const Activations& matrix, int32_t rows) {
  std::vector<float> values;
  for (int32_t r = 0; r < rows; ++r) {
    const std::byte* const row = matrix.row(r);
    for (int32_t i = 0; i < matrix.cols(); ++i) {
      if (matrix.rows_are_floats()) {
        values.push_back(reinterpret_cast<const float*>(row)[i]);
      } else if (matrix.type() == ElementType::kBf16) {
        values.push_back(FromBf16(reinterpret_cast<const uint16_t*>(row)[i]));
      } else {
        values.push_back(matrix.scales()[r] *
                         reinterpret_cast<const int8_t*>(row)[i]);
      }
    }
  }
  return values;
}

// bf16's values are f32's, rounded by ToBf16; all rows of both.
inline bool IsRounded(const Activations& bf16, const Activations& f32) {
  return SameBits(Values(bf16, f32.max_rows()),
                  Rounded(Values(f32, f32.max_rows()), ElementType::kBf16));
}

}  // namespace folio

#endif  // TESTS_RUNTIME_KERNELS_MATRICES_H_
