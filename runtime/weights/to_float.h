// Weights as floats, whatever their file holds.

#ifndef RUNTIME_WEIGHTS_TO_FLOAT_H_
#define RUNTIME_WEIGHTS_TO_FLOAT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/weights/tensor_table.h"

namespace folio {

// Elements [first, first + out.size()) of `tensor`, row-major. Exact for F32,
// F16 and BF16 (subnormals, infinities and NaNs with their payload included);
// for the quantised types scale and product are rounded to f32, in the order
// that the reference implementation has them.
// REQUIRES: the range is inside the tensor and consists of whole blocks.
void ToFloat(const TensorView& tensor, int64_t first, std::span<float> out);

// All elements.
std::vector<float> ToFloat(const TensorView& tensor);

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_TO_FLOAT_H_
