#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/philox.h"

namespace folio {
namespace {

class Mutator {
 public:
  Mutator(std::string bytes, uint64_t seed)
      : bytes_(std::move(bytes)), seed_(seed) {}

  void Change() {
    const size_t at = Below(bytes_.size() + 1);
    const size_t length = std::min(1 + Below(16), bytes_.size() - at);
    switch (Below(8)) {
      case 0:
        if (length > 0) bytes_[at] ^= static_cast<char>(1 << Below(8));
        return;
      case 1:
        if (length > 0) bytes_[at] = RandomByte();
        return;
      case 2:
        bytes_.insert(at, 1 + Below(16), RandomByte());
        return;
      case 3:
        bytes_.erase(at, length);
        return;
      case 4:
        bytes_.insert(Below(bytes_.size() + 1), bytes_.substr(at, length));
        return;
      case 5:
        bytes_.resize(at);
        return;
      default:
        ReplaceNumber(at);
    }
  }

  std::string Take() && { return std::move(bytes_); }

  // Uniform enough: `count` is far below 2^32.
  size_t Below(size_t count) { return PhiloxAt(seed_, 0, next_++)[0] % count; }

 private:
  // Any byte, or one that formats of text give a meaning.
  char RandomByte() {
    static constexpr std::string_view kMeaningful =
        "0123456789[]{}\",:-.eE \\u";
    return Below(2) == 0 ? static_cast<char>(Below(256))
                         : kMeaningful[Below(kMeaningful.size())];
  }

  void ReplaceNumber(size_t at) {
    static constexpr uint64_t kNumbers[] = {0,
                                            1,
                                            2,
                                            13,
                                            255,
                                            0x7FFFFFFF,
                                            0x80000000,
                                            0xFFFFFFFF,
                                            0x100000000,
                                            uint64_t{1} << 62,
                                            uint64_t{1} << 63,
                                            ~uint64_t{0}};
    const uint64_t number = kNumbers[Below(std::size(kNumbers))];
    const size_t size = std::min(size_t{4} << Below(2), bytes_.size() - at);
    std::memcpy(bytes_.data() + at, &number, size);
  }

  std::string bytes_;
  const uint64_t seed_;
  uint64_t next_ = 0;
};

}  // namespace

std::string Mutated(std::string bytes, uint64_t seed) {
  Mutator mutator(std::move(bytes), seed);
  for (size_t changes = 1 + mutator.Below(4); changes > 0; --changes) {
    mutator.Change();
  }
  return std::move(mutator).Take();
}

}  // namespace folio
