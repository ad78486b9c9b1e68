#include "runtime/server/small_file.h"

#include <sys/stat.h>

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using ::testing::HasSubstr;

class SmallFileTest : public testing::Test {
 protected:
  void Write(const std::string& contents) {
    std::ofstream(path_, std::ios::binary) << contents;
  }

  void ExpectError(absl::StatusCode code, const std::string& path,
                   const std::string& what) {
    const absl::Status status = ReadSmallFile(path).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("'" + path + "'"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }

  const TempDir dir_;
  const std::string path_ = dir_.path() + "/file";
};

TEST_F(SmallFileTest, IsReadWhole) {
  // Longer than what one read gives.
  const std::string contents = std::string(200'000, 'a') + '\0' + "\xff\n";
  Write(contents);
  EXPECT_EQ(ReadSmallFile(path_).value(), contents);
  Write("");
  EXPECT_EQ(ReadSmallFile(path_).value(), "");
}

TEST_F(SmallFileTest, SaysWhatIsNoFile) {
  ExpectError(absl::StatusCode::kNotFound, path_, "No such file");
  ExpectError(absl::StatusCode::kUnavailable, dir_.path(), "directory");
  ExpectError(absl::StatusCode::kInvalidArgument, "/dev/zero", "16777216");
}

// To read one that nobody writes to would take for ever.
TEST_F(SmallFileTest, RefusesAPipe) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  ExpectError(absl::StatusCode::kInvalidArgument, path_, "is a pipe");
}

TEST_F(SmallFileTest, VersionTellsAWriteThatKeepsTheSize) {
  EXPECT_EQ(VersionOf(path_), std::nullopt);
  Write("one");
  const auto before = VersionOf(path_);
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(VersionOf(path_), before);
  // (The kernel's time stamps have steps of some milliseconds.)
  do {
    Write("two");
  } while (VersionOf(path_)->changed_ns == before->changed_ns);
  EXPECT_NE(VersionOf(path_), before);
}

}  // namespace
}  // namespace folio
