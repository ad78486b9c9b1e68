// Weights as floats, whatever their file holds.

#ifndef RUNTIME_WEIGHTS_TO_FLOAT_H_
#define RUNTIME_WEIGHTS_TO_FLOAT_H_

#include <vector>

#include "runtime/weights/tensor_file.h"

namespace folio {

// The elements of `tensor`, row-major. Exact: every F16 and BF16 is a float,
// subnormals, infinities and NaNs (with their payload) included.
std::vector<float> ToFloat(const TensorView& tensor);

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_TO_FLOAT_H_
