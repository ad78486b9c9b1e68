// A whole file as read-only memory.

#ifndef RUNTIME_WEIGHTS_MAPPED_FILE_H_
#define RUNTIME_WEIGHTS_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace folio {

// Owns the mapping. The file must not be shortened meanwhile: reading what is
// no longer there ends the process (SIGBUS). Thread-safe, being immutable.
class MappedFile {
 public:
  // Maps the regular file at `path`. The status names it: NOT_FOUND,
  // PERMISSION_DENIED, INVALID_ARGUMENT (a folder, a device), or whatever else
  // the system says.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(
      const std::string& path);

  // What is in memory already, as if it were the file `path`. The bytes must
  // outlive the result.
  static std::shared_ptr<const MappedFile> OfMemory(
      std::string path, std::span<const std::byte> bytes);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

  // Tells the system that `part` of bytes() is not needed for now: its whole
  // pages leave resident memory, and come back from the file when they are read
  // again. Does nothing to what is OfMemory.
  // REQUIRES: `part` lies in bytes().
  void DropPages(std::span<const std::byte> part) const;

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes, bool is_mapped)
      : path_(std::move(path)), bytes_(bytes), is_mapped_(is_mapped) {}

  const std::string path_;
  const std::span<const std::byte> bytes_;  // Null for an empty file.
  const bool is_mapped_;
};

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_MAPPED_FILE_H_
