// The files that make up one model in the Hugging Face layout.

#ifndef RUNTIME_WEIGHTS_MODEL_FILES_H_
#define RUNTIME_WEIGHTS_MODEL_FILES_H_

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/weights/mapped_file.h"
#include "runtime/weights/tensor_table.h"

namespace folio {

// A folder on disk, or files that the program carries in itself; whoever reads
// a model does not see which. Immutable.
class ModelFiles {
 public:
  static ModelFiles Folder(std::string path);

  struct Embedded {
    std::string_view name;
    std::span<const std::byte> bytes;
  };
  // The bytes must outlive everything that is opened from the result.
  static ModelFiles InMemory(std::string name, std::vector<Embedded> files);

  // How messages call the folder, and a file of it.
  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view file) const;

  bool Has(std::string_view file) const;

  // The status is MappedFile::Open's; NOT_FOUND for what is not in memory.
  absl::StatusOr<std::shared_ptr<const MappedFile>> Open(
      std::string_view file) const;

  // The statuses are those of ReadJsonFile.
  absl::StatusOr<nlohmann::json> ReadJson(std::string_view file) const;

  // The tensors of model.safetensors; without it, of all shards that
  // model.safetensors.index.json lists. INVALID_ARGUMENT names the file (and
  // tensor) when the index and the shards disagree (a tensor that is in two
  // shards, or not in the one that the index says, or not in the index), a
  // shard's name leads out of the folder, or a file is malformed. NOT_FOUND
  // names both files when there is neither.
  absl::StatusOr<TensorTable> ReadTensors() const;

 private:
  ModelFiles(std::string path, bool on_disk, std::vector<Embedded> files)
      : path_(std::move(path)), on_disk_(on_disk), files_(std::move(files)) {}

  std::string path_;
  bool on_disk_;
  std::vector<Embedded> files_;
};

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_MODEL_FILES_H_
