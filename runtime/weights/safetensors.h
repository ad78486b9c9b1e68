// Reads the safetensors format: a JSON header, then raw tensors.

#ifndef RUNTIME_WEIGHTS_SAFETENSORS_H_
#define RUNTIME_WEIGHTS_SAFETENSORS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/weights/mapped_file.h"
#include "runtime/weights/tensor_file.h"

namespace folio {

// The format (https://github.com/huggingface/safetensors#format):
//
//   [0, 8)            header length N, little-endian
//   [8, 8 + N)        a JSON object {name: {"dtype", "shape", "data_offsets"}},
//                     and perhaps "__metadata__", an object of strings
//   [8 + N, the end)  the tensors; data_offsets count from here
//
// Owns the mapped file; immutable, so any number of threads may read it.
class SafetensorsFile {
 public:
  // Checks the whole header before anything is read: every tensor's dtype is
  // known, its shape and dtype take exactly the bytes of its offsets, and the
  // tensors cover the data without gap or overlap. INVALID_ARGUMENT otherwise,
  // naming file and tensor, with what was found and what was expected; or a
  // status of MappedFile::Open. Memory in proportion to the header.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(
      const std::string& path);

  // By name. Views are valid as long as this object; their bytes need not be
  // aligned.
  const std::map<std::string, TensorView, std::less<>>& tensors() const {
    return tensors_;
  }

  // Tensors of the format's other dtypes, name to dtype ("I64", "BOOL"): some
  // exports carry integer masks that no model needs.
  const std::map<std::string, std::string, std::less<>>& unreadable() const {
    return unreadable_;
  }

 private:
  explicit SafetensorsFile(std::unique_ptr<MappedFile> file)
      : file_(std::move(file)) {}

  absl::Status ParseHeader(const std::string& path);

  std::unique_ptr<MappedFile> file_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> unreadable_;
};

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_SAFETENSORS_H_
