// Floats as files hold them.

#ifndef RUNTIME_WEIGHTS_FROM_FLOAT_H_
#define RUNTIME_WEIGHTS_FROM_FLOAT_H_

#include <cstddef>
#include <span>

#include "runtime/weights/tensor_table.h"

namespace folio {

// Whether FromFloat writes `dtype`: F32, BF16, Q8_0 and Q4_0.
bool CanWrite(DType dtype);

// Rounds finite `values` to `dtype`, to nearest, and writes them to `out`. The
// scale of a quantised block is the one that the format's reference takes
// (https://github.com/ggml-org/ggml/blob/master/src/ggml-quants.c):
//
//   Q8_0  the largest magnitude is 127 steps
//   Q4_0  the value of largest magnitude is -8 steps; those at the other end,
//         which 4 bits cut off at 7, may be a whole step away
//
// REQUIRES: CanWrite(dtype); whole blocks; `out` has exactly their bytes.
void FromFloat(DType dtype, std::span<const float> values,
               std::span<std::byte> out);

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_FROM_FLOAT_H_
