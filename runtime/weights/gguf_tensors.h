// The tensors of a GGUF file.

#ifndef RUNTIME_WEIGHTS_GGUF_TENSORS_H_
#define RUNTIME_WEIGHTS_GGUF_TENSORS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/weights/gguf_reader.h"
#include "runtime/weights/tensor_table.h"

namespace folio {

// Reads the descriptions of `count` tensors, whose data begins at the next
// multiple of `alignment` after them. INVALID_ARGUMENT for every malformed one;
// of types that Folio does not read, the size is not checked.
absl::StatusOr<TensorTable> ReadGgufTensors(GgufReader& reader, uint64_t count,
                                            uint32_t alignment);

// The format's number for a type.
uint32_t GgufNumberOf(DType dtype);

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_GGUF_TENSORS_H_
