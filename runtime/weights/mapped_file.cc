#include "runtime/weights/mapped_file.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace folio {

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(
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
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, {static_cast<const std::byte*>(data), size},
                     /*is_mapped=*/size > 0));
}

std::shared_ptr<const MappedFile> MappedFile::OfMemory(
    std::string path, std::span<const std::byte> bytes) {
  return std::shared_ptr<const MappedFile>(
      new MappedFile(std::move(path), bytes, /*is_mapped=*/false));
}

MappedFile::~MappedFile() {
  if (!is_mapped_) return;
  PCHECK(munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()) == 0);
}

void MappedFile::DropPages(std::span<const std::byte> part) const {
  if (!is_mapped_ || part.empty()) return;
  CHECK(part.data() >= bytes_.data() &&
        part.data() + part.size() <= bytes_.data() + bytes_.size())
      << "not a part of '" << path_ << "'";
  const size_t page = sysconf(_SC_PAGESIZE);
  // The mapping begins at a page, so that offsets are aligned as addresses are.
  const size_t offset = part.data() - bytes_.data();
  const size_t begin = (offset + page - 1) / page * page;
  const size_t end = (offset + part.size()) / page * page;
  if (begin >= end) return;
  // The mapping is private and never written to: the next read finds the same
  // bytes in the file.
  PCHECK(madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin,
                 MADV_DONTNEED) == 0)
      << path_;
}

}  // namespace folio
