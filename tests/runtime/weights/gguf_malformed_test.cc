#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "runtime/weights/gguf.h"
#include "tests/support/bytes.h"
#include "tests/support/malformed_gguf.h"

namespace folio {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::Status Parse(std::string_view bytes) {
  // Memory of exactly this size, so that AddressSanitizer sees a read past it.
  const std::vector<char> exact(bytes.begin(), bytes.end());
  return GgufFile::Parse(MappedFile::OfMemory("some/model.gguf",
                                              std::as_bytes(std::span(exact))))
      .status();
}

TEST(MalformedGguf, EachIsRefusedWithFilePlaceFoundAndExpected) {
  for (const auto& [what, bytes, says] : MalformedGgufs()) {
    SCOPED_TRACE(what);
    const absl::Status status = Parse(bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const std::string message(status.message());
    EXPECT_THAT(message, StartsWith("'some/model.gguf': "));
    for (const std::string& part : says) EXPECT_THAT(message, HasSubstr(part));
    EXPECT_LT(message.size(), 1000u);
  }
}

TEST(MalformedGguf, RefusesAFileCutAtAnyByte) {
  const std::string whole = SmallGguf();
  ASSERT_TRUE(Parse(whole).ok()) << Parse(whole);
  // The last tensor is of a type that is not read: its size is not known.
  constexpr size_t kUnread = 5;
  for (size_t size = 0; size < whole.size() - kUnread; ++size) {
    SCOPED_TRACE(size);
    const absl::Status status = Parse(std::string_view(whole).substr(0, size));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                StartsWith("'some/model.gguf': "));
  }
}

}  // namespace
}  // namespace folio
