// Rows of logits for tests of what reduces or samples them.

#ifndef TESTS_RUNTIME_KERNELS_LOGITS_ROWS_H_
#define TESTS_RUNTIME_KERNELS_LOGITS_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/kernels/column_blocks.h"
#include "tests/support/random_floats.h"

namespace folio {

// `values` as row 1 of two.
inline ColumnBlocks Blocks(const std::vector<float>& values,
                           int32_t num_blocks) {
  const int32_t cols = static_cast<int32_t>(values.size());
  ColumnBlocks blocks(2, ColumnBlocks::EvenCuts(cols, num_blocks));
  for (int32_t b = 0; b < blocks.num_blocks(); ++b) {
    std::copy_n(values.begin() + blocks.first_column(b), blocks.block_cols(b),
                blocks.block_data(b) + blocks.block_cols(b));
  }
  return blocks;
}

inline std::vector<float> Logits(uint64_t seed, int32_t size) {
  return RandomFloats(seed, size, 12);
}

}  // namespace folio

#endif  // TESTS_RUNTIME_KERNELS_LOGITS_ROWS_H_
