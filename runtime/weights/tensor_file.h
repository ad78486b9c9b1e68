// Named tensors of a model's file, mapped read-only.

#ifndef RUNTIME_WEIGHTS_TENSOR_FILE_H_
#define RUNTIME_WEIGHTS_TENSOR_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace folio {

enum class DType { kF32, kF16, kBF16 };

// A view into a mapped file; valid as long as its owner.
struct TensorView {
  DType dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // Row-major, little-endian.
};

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_TENSOR_FILE_H_
