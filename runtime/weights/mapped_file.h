// A whole file as read-only memory.

#ifndef RUNTIME_WEIGHTS_MAPPED_FILE_H_
#define RUNTIME_WEIGHTS_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace folio {

// Owns the mapping. The file must not be shortened meanwhile: reading what is
// no longer there ends the process (SIGBUS). Thread-safe, being immutable.
class MappedFile {
 public:
  // Maps the regular file at `path`. The status names it: NOT_FOUND,
  // PERMISSION_DENIED, INVALID_ARGUMENT (a folder, a device), or whatever else
  // the system says.
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(
      const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  const std::span<const std::byte> bytes_;  // Null for an empty file.
};

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_MAPPED_FILE_H_
