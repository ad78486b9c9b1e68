// Reductions over one row of logits: what a sampler needs.

#ifndef RUNTIME_KERNELS_VOCAB_REDUCE_H_
#define RUNTIME_KERNELS_VOCAB_REDUCE_H_

#include <cstdint>
#include <vector>

#include "runtime/kernels/column_blocks.h"

namespace folio {

// All results are the same to the last bit wherever the columns are cut.

struct MaxResult {
  int32_t index = 0;  // The lowest one that holds the maximum.
  float value = 0;    // The greatest element that is not NaN.
  bool has_nan = false;
};

// When there are only NaNs, index is 0 and value is -infinity. Where maxima are
// kept, reads a quarter as much.
MaxResult ArgMax(const ColumnBlocks& logits, int32_t row);

// Writes the maxima of columns [begin, end) of a block, counted from its first,
// for rows [0, rows). REQUIRES: y.keeps_maxima(); `begin` and `end` are where
// stripes of the block begin or end.
void FindMaxima(int32_t block, int32_t begin, int32_t end, int32_t rows,
                ColumnBlocks& y);

// log(sum of exp(inverse_temperature * logit)), so that a token's
// log-probability is inverse_temperature * logit - LogSumExp(...).
// REQUIRES: `max` is the row's maximum, finite; no NaN; 0 <=
// inverse_temperature, finite.
double LogSumExp(const ColumnBlocks& logits, int32_t row, float max,
                 float inverse_temperature);

struct IndexedValue {
  int32_t index = 0;
  float value = 0;

  friend bool operator==(const IndexedValue&, const IndexedValue&) = default;
};

// Leaves in `out` the `k` greatest elements (fewer when the row is shorter),
// greatest first, equal ones by ascending index. NaNs are left out. Two passes
// over the row; `out` also serves as scratch memory, for which a capacity of
// logits.cols() is always enough, and keeps it. O(cols + k log(k)).
// REQUIRES: k >= 1.
void TopK(const ColumnBlocks& logits, int32_t row, int32_t k,
          std::vector<IndexedValue>& out);

}  // namespace folio

#endif  // RUNTIME_KERNELS_VOCAB_REDUCE_H_
