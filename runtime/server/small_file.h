// Files of configuration that may change while the process runs.

#ifndef RUNTIME_SERVER_SMALL_FILE_H_
#define RUNTIME_SERVER_SMALL_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace folio {

// Differs when the file at a path has been written to or replaced. (The time of
// the last change of status also tells a write that keeps size and mtime.)
struct FileVersion {
  dev_t device;
  ino_t inode;
  off_t size;
  int64_t modified_ns;
  int64_t changed_ns;

  bool operator==(const FileVersion&) const = default;
};

// Of what `path` leads to, links followed; nothing when that is nowhere.
std::optional<FileVersion> VersionOf(const std::string& path);

// All of a file. NOT_FOUND, PERMISSION_DENIED or UNAVAILABLE says why it can't
// be read, INVALID_ARGUMENT that it has more than 16 MiB; all of them name it.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

}  // namespace folio

#endif  // RUNTIME_SERVER_SMALL_FILE_H_
