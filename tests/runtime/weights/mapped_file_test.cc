#include "runtime/weights/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using ::testing::HasSubstr;

TEST(MappedFile, HoldsTheBytesOfTheFile) {
  const TempDir dir;
  const std::string contents("one\0two\xFF", 8);
  const auto file = MappedFile::Open(dir.Write("some.bin", contents));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->text(), contents);
  EXPECT_EQ((*file)->bytes().size(), 8u);
  EXPECT_EQ((*file)->bytes()[7], std::byte{0xFF});
}

TEST(MappedFile, CanBeEmpty) {
  const TempDir dir;
  const auto file = MappedFile::Open(dir.Write("empty", ""));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->bytes().empty());
}

TEST(MappedFile, NamesWhatItCannotOpen) {
  const TempDir dir;
  const std::string missing = dir.path() + "/missing.bin";
  const auto file = MappedFile::Open(missing);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr(missing));
}

TEST(MappedFile, RefusesWhatIsNotARegularFile) {
  const TempDir dir;
  const std::string pipe = dir.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {dir.path(), pipe, std::string("/dev/null")}) {
    const auto file = MappedFile::Open(path);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(path));
  }
}

}  // namespace
}  // namespace folio
