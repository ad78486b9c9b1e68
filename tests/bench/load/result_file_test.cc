#include "bench/load/result_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using ::testing::HasSubstr;

std::string ReadBack(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int NumFiles(const std::string& folder) {
  return static_cast<int>(
      std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(ResultFileTest, TakesThePlaceOfWhatWasThere) {
  const TempDir dir;
  const std::string path = dir.path() + "/file";
  ASSERT_TRUE(CheckWritable(path).ok());
  EXPECT_EQ(NumFiles(dir.path()), 0);  // To look leaves nothing behind.
  for (const std::string text : {"one", "a longer text", "", "end"}) {
    ASSERT_TRUE(WriteResult(path, text).ok());
    EXPECT_EQ(ReadBack(path), text);
    ASSERT_TRUE(CheckWritable(path).ok());
    EXPECT_EQ(ReadBack(path), text);
  }
  EXPECT_EQ(NumFiles(dir.path()), 1);
}

TEST(ResultFileTest, SaysWhatCanNotBeWritten) {
  const TempDir dir;
  for (const std::string& path : {dir.path() + "/none/file", dir.path()}) {
    for (const absl::Status& status :
         {CheckWritable(path), WriteResult(path, "text")}) {
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("'" + path + "'"));
    }
  }
}

// What is no file is written to, and stays what it is.
TEST(ResultFileTest, LeavesADeviceADevice) {
  EXPECT_TRUE(WriteResult("/dev/null", "text").ok());
  EXPECT_TRUE(absl::IsUnavailable(WriteResult("/dev/full", "text")));
  struct stat found;
  ASSERT_EQ(stat("/dev/null", &found), 0);
  EXPECT_TRUE(S_ISCHR(found.st_mode));
}

}  // namespace
}  // namespace folio
