#include "runtime/weights/mapped_file.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace folio {

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(
    const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait for somebody to write to it.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("can't open '", path, "'"));
  }
  const absl::Cleanup close_file = [file] { close(file); };

  struct stat info;
  if (fstat(file, &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("can't stat '", path, "'"));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is not a regular file"));
  }
  const size_t size = info.st_size;
  void* data = nullptr;
  if (size > 0) {
    data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) {
      return absl::ErrnoToStatus(errno, absl::StrCat("can't map '", path, "'"));
    }
  }
  return std::unique_ptr<MappedFile>(
      new MappedFile({static_cast<const std::byte*>(data), size}));
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  PCHECK(munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()) == 0);
}

}  // namespace folio
