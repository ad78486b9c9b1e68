// What happens to activations between the matrix products.

#ifndef RUNTIME_KERNELS_ELEMENTWISE_H_
#define RUNTIME_KERNELS_ELEMENTWISE_H_

#include <cstdint>
#include <span>

#include "runtime/base/executor.h"
#include "runtime/kernels/activations.h"
#include "runtime/kernels/column_blocks.h"
#include "runtime/kernels/parallel_rows.h"

namespace folio {

// Each row's result depends on that row alone; it is computed in f32 and then
// rounded as Activations says. `rows` are those of x, which is dense, and of
// `out`; row 0 of y is of the first of them. The widths are those of the spans,
// ColumnBlocks and Activations, which must have the rows.

// x[rows, cols] += y[rows, cols].
void AddColumnBlocks(const ColumnBlocks& y, Rows rows, std::span<float> x,
                     Executor& executor);

// out = (x - mean) / sqrt(variance + epsilon) * weight + bias, over each row of
// weight.size() elements (Ba et al., "Layer Normalization", 2016). The variance
// is taken of x - mean, so that a large mean costs no digits.
void LayerNorm(std::span<const float> x, Rows rows,
               std::span<const float> weight, std::span<const float> bias,
               float epsilon, Activations& out, Executor& executor);

// out = x / sqrt(mean(x^2) + epsilon) * weight, over each row of weight.size()
// elements (Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019).
void RmsNorm(std::span<const float> x, Rows rows, std::span<const float> weight,
             float epsilon, Activations& out, Executor& executor);

// x += y as AddColumnBlocks, and then LayerNorm or RmsNorm of x, in one pass.
void AddAndLayerNorm(const ColumnBlocks& y, Rows rows, std::span<float> x,
                     std::span<const float> weight, std::span<const float> bias,
                     float epsilon, Activations& out, Executor& executor);
void AddAndRmsNorm(const ColumnBlocks& y, Rows rows, std::span<float> x,
                   std::span<const float> weight, float epsilon,
                   Activations& out, Executor& executor);

// out[rows, cols] = GELU(y) = y / 2 * (1 + erf(y / sqrt(2))) (Hendrycks and
// Gimpel, 2016; the exact form). In f32 the error is below
// 2e-7 * max(1, |y|).
void GeluErf(const ColumnBlocks& y, Rows rows, Activations& out,
             Executor& executor);

// The tanh form of GELU ("gelu_new"): y / 2 * (1 + tanh(sqrt(2 / pi) *
// (y + 0.044715 y^3))). In f32 the error is below 4e-7 * max(1, |y|).
void GeluTanh(const ColumnBlocks& y, Rows rows, Activations& out,
              Executor& executor);

// out[rows, cols] = silu(gate) * up, where y[rows, 2 * cols] is gate, then up,
// and silu(g) = g / (1 + exp(-g)) (Shazeer, "GLU Variants Improve Transformer",
// 2020). In f32 the error is below 1e-6 of the result, and, since exp(g) below
// exp(-87) counts as 0, 2e-36 * max(1, |up|) more.
void SwiGlu(const ColumnBlocks& y, Rows rows, Activations& out,
            Executor& executor);

}  // namespace folio

#endif  // RUNTIME_KERNELS_ELEMENTWISE_H_
