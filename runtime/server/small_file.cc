#include "runtime/server/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace folio {
namespace {

// Ten times the tokens or certificate authorities that anybody has; /dev/zero
// has more.
constexpr size_t kMaxBytes = 16 << 20;

int64_t ToNanoseconds(const timespec& time) {
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

absl::Status CantRead(const std::string& path, int error) {
  const std::string message =
      absl::StrCat("can't read '", path, "': ", strerror(error));
  if (error == ENOENT) return absl::NotFoundError(message);
  if (error == EACCES) return absl::PermissionDeniedError(message);
  return absl::UnavailableError(message);
}

}  // namespace

std::optional<FileVersion> VersionOf(const std::string& path) {
  struct stat found;
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return FileVersion{.device = found.st_dev,
                     .inode = found.st_ino,
                     .size = found.st_size,
                     .modified_ns = ToNanoseconds(found.st_mtim),
                     .changed_ns = ToNanoseconds(found.st_ctim)};
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  // (Opening a pipe that nobody writes to would take for ever.)
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return CantRead(path, errno);
  const absl::Cleanup close_file = [file] { close(file); };
  struct stat found;
  if (fstat(file, &found) == 0 && S_ISFIFO(found.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is a pipe; it must be a file"));
  }
  std::string contents;
  std::array<char, 65536> buffer;
  while (contents.size() <= kMaxBytes) {
    const ssize_t size = read(file, buffer.data(), buffer.size());
    if (size == 0) return contents;
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return CantRead(path, errno);
    contents.append(buffer.data(), size);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", path, "' has more than ", kMaxBytes,
                   " bytes, and so is not the file that is meant"));
}

}  // namespace folio
