// Reads the GGUF format: metadata, then quantised tensors.

#ifndef RUNTIME_WEIGHTS_GGUF_H_
#define RUNTIME_WEIGHTS_GGUF_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/weights/mapped_file.h"
#include "runtime/weights/tensor_table.h"

namespace folio {

// GGUF, versions 2 and 3, little-endian
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md):
//
//   "GGUF", version u32, number of tensors u64, number of metadata entries u64
//   the metadata: key, type u32, value
//   the tensors: name, number of dimensions u32, dimensions u64 (innermost
//     first), type u32, offset u64 into the data
//   padding to `general.alignment` (a power of two of at least 8; 32 when the
//   key is missing), then the data
//
// Owns a share of the file; immutable, so any number of threads may read it.
class GgufFile {
 public:
  // Checks everything but the numbers in the tensors: keys and names are
  // unique, sizes agree, tensors lie inside the file, aligned, without overlap
  // (of a type that Folio does not read the size is not known). No arrays of
  // arrays. INVALID_ARGUMENT otherwise, naming file and key or tensor, with
  // what was found and what is expected. Memory in proportion to the file's
  // header.
  static absl::StatusOr<std::unique_ptr<GgufFile>> Parse(
      std::shared_ptr<const MappedFile> file);
  static absl::StatusOr<std::unique_ptr<GgufFile>> Open(
      const std::string& path);
  ~GgufFile();

  const std::string& path() const;

  // --- Metadata. ---

  // Every key, sorted.
  std::vector<std::string_view> keys() const;
  bool Has(std::string_view key) const;

  // The value of a key. NOT_FOUND when it is missing, INVALID_ARGUMENT when it
  // has another type (or does not fit into the result); both name file and key.
  // Any integer type is an integer, and also a number.
  absl::StatusOr<int64_t> Integer(std::string_view key) const;
  absl::StatusOr<double> Number(std::string_view key) const;
  absl::StatusOr<bool> Bool(std::string_view key) const;
  absl::StatusOr<std::string_view> String(std::string_view key) const;
  // Arrays. The views are valid as long as the file is.
  absl::StatusOr<std::span<const std::string_view>> Strings(
      std::string_view key) const;
  absl::StatusOr<std::vector<int64_t>> Integers(std::string_view key) const;
  absl::StatusOr<std::vector<double>> Numbers(std::string_view key) const;

  // --- Tensors; none in a file of vocabulary only. ---

  // Shapes are outermost dimension first, as everywhere in Folio; the file has
  // them the other way round.
  const TensorTable& tensors() const;

 private:
  struct Contents;
  explicit GgufFile(std::unique_ptr<Contents> contents);

  std::unique_ptr<Contents> contents_;
};

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_GGUF_H_
