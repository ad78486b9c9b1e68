// What happens to activations between the matrix products.

#ifndef RUNTIME_KERNELS_ELEMENTWISE_H_
#define RUNTIME_KERNELS_ELEMENTWISE_H_

#include <cstdint>
#include <span>

#include "runtime/base/executor.h"
#include "runtime/kernels/column_blocks.h"

namespace folio {

// Each row's result depends on that row alone. The widths are those of the
// spans and ColumnBlocks; x and out are dense, with at least `rows` rows.

// x[rows, cols] += y[rows, cols].
void AddColumnBlocks(const ColumnBlocks& y, int32_t rows, std::span<float> x,
                     Executor& executor);

// out = (x - mean) / sqrt(variance + 1e-5) * weight + bias, over each row of
// weight.size() elements (Ba et al., "Layer Normalization", 2016). The variance
// is taken of x - mean, so that a large mean costs no digits.
void LayerNorm(std::span<const float> x, int32_t rows,
               std::span<const float> weight, std::span<const float> bias,
               std::span<float> out, Executor& executor);

// out[rows, cols] = GELU(y) = y / 2 * (1 + erf(y / sqrt(2))) (Hendrycks and
// Gimpel, 2016; the exact form, not the tanh one). The error is below
// 2e-7 * max(1, |y|).
void GeluErf(const ColumnBlocks& y, int32_t rows, std::span<float> out,
             Executor& executor);

}  // namespace folio

#endif  // RUNTIME_KERNELS_ELEMENTWISE_H_
