#include "runtime/server/quoted.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "runtime/base/utf8.h"

namespace folio {
namespace {

constexpr size_t kMaxBytes = 100;

// How many bytes the whole characters take that fit into `kMaxBytes`.
size_t LengthOfStart(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const size_t next = length + FrontOfUtf8(text.substr(length)).length;
    if (next > kMaxBytes) break;
    length = next;
  }
  return length;
}

}  // namespace

std::string Quoted(std::string_view text) {
  const size_t length = LengthOfStart(text);
  const std::string start(text.substr(0, length));
  return absl::StrCat("'", start, length < text.size() ? "..." : "", "'");
}

}  // namespace folio
