// Reads the safetensors format: a JSON header, then raw tensors.

#ifndef RUNTIME_WEIGHTS_SAFETENSORS_H_
#define RUNTIME_WEIGHTS_SAFETENSORS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/weights/mapped_file.h"
#include "runtime/weights/tensor_table.h"

namespace folio {

// The tensors of a file in the format
// (https://github.com/huggingface/safetensors#format):
//
//   [0, 8)            header length N, little-endian
//   [8, 8 + N)        a JSON object {name: {"dtype", "shape", "data_offsets"}},
//                     and perhaps "__metadata__", an object of strings
//   [8 + N, the end)  the tensors; data_offsets count from here
//
// Checks the whole header before anything is read: every tensor's dtype is
// known, its shape and dtype take exactly the bytes of its offsets, and the
// tensors cover the data without gap or overlap. INVALID_ARGUMENT otherwise,
// naming file and tensor, with what was found and what was expected. Memory in
// proportion to the header. Each view owns a share of `file`.
absl::StatusOr<TensorTable> ReadSafetensors(
    std::shared_ptr<const MappedFile> file);

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_SAFETENSORS_H_
