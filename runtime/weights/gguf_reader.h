// Walks through the bytes of a GGUF file.

#ifndef RUNTIME_WEIGHTS_GGUF_READER_H_
#define RUNTIME_WEIGHTS_GGUF_READER_H_

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/weights/mapped_file.h"

namespace folio {

static_assert(std::endian::native == std::endian::little,
              "files of weights are little-endian, and so must the machine be");

// A place in the file, which moves forward with what is read. Nothing is read
// past the end: a read that finds too little returns false and stays there, and
// Truncated() then says so.
class GgufReader {
 public:
  explicit GgufReader(std::shared_ptr<const MappedFile> file)
      : file_(std::move(file)), rest_(file_->bytes()) {}

  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  uint64_t offset() const { return file_->bytes().size() - rest_.size(); }
  uint64_t remaining() const { return rest_.size(); }

  bool ReadBytes(uint64_t count, std::span<const std::byte>& bytes) {
    if (count > rest_.size()) {
      wanted_ = count;
      return false;
    }
    bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return true;
  }

  template <typename T>
  requires std::integral<T>
  bool Read(T& number) {
    std::span<const std::byte> bytes;
    if (!ReadBytes(sizeof(T), bytes)) return false;
    std::memcpy(&number, bytes.data(), sizeof(T));
    return true;
  }

  // A length, u64, and that many bytes. The view is into the file.
  bool ReadString(std::string_view& text) {
    uint64_t length = 0;
    std::span<const std::byte> bytes;
    if (!Read(length) || !ReadBytes(length, bytes)) return false;
    text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return true;
  }

  // What every message begins with.
  std::string InFile() const { return absl::StrCat("'", file_->path(), "': "); }

  // After a read that returned false: `what` is what it was reading.
  absl::Status Truncated(std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(
        InFile(), std::string(what), " takes ", wanted_, " bytes at offset ",
        offset(), ", but the file has only ", remaining(),
        " there; it may have been cut short: download it again"));
  }

 private:
  const std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> rest_;
  uint64_t wanted_ = 0;
};

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_GGUF_READER_H_
