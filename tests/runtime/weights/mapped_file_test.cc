#include "runtime/weights/mapped_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "tests/support/bytes.h"
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

TEST(MappedFile, KnowsItsPath) {
  const TempDir dir;
  const std::string path = dir.Write("some.bin", "x");
  EXPECT_EQ((*MappedFile::Open(path))->path(), path);
}

TEST(MappedFile, CanBeOfMemory) {
  const std::string contents = "in memory";
  const auto file = MappedFile::OfMemory("like/a.file", AsBytes(contents));
  EXPECT_EQ(file->path(), "like/a.file");
  EXPECT_EQ(file->text().data(), contents.data());
  EXPECT_EQ(file->text(), contents);
  file->DropPages(file->bytes());
  EXPECT_EQ(file->text(), contents);
  EXPECT_TRUE(MappedFile::OfMemory("empty", {})->bytes().empty());
}

// Which pages of `bytes` the process has in memory, as the kernel's
// Documentation/admin-guide/mm/pagemap.rst describes it.
std::vector<bool> ResidentPages(std::span<const std::byte> bytes,
                                size_t page_size) {
  const int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  EXPECT_GE(map, 0);
  const size_t first = reinterpret_cast<uintptr_t>(bytes.data()) / page_size;
  std::vector<uint64_t> entries(bytes.size() / page_size);
  const size_t size = entries.size() * sizeof(uint64_t);
  EXPECT_EQ(pread(map, entries.data(), size,
                  static_cast<off_t>(first * sizeof(uint64_t))),
            static_cast<ssize_t>(size));
  close(map);
  std::vector<bool> resident;
  for (const uint64_t entry : entries) resident.push_back(entry >> 63 != 0);
  return resident;
}

TEST(MappedFile, DropsWholePagesAndReadsThemAgain) {
  const size_t page = sysconf(_SC_PAGESIZE);
  constexpr size_t kPages = 40;
  std::string contents(kPages * page, '\0');
  for (size_t i = 0; i < contents.size(); ++i) {
    contents[i] = static_cast<char>(i / page + i);
  }
  const TempDir dir;
  const auto file = *MappedFile::Open(dir.Write("pages", contents));
  ASSERT_EQ(file->text(), contents);  // Reads all.
  ASSERT_EQ(ResidentPages(file->bytes(), page),
            std::vector<bool>(kPages, true));

  // From inside page 2 to inside page 30: 3 to 29 are whole.
  file->DropPages(file->bytes().subspan(2 * page + 1, 28 * page + 5));
  std::vector<bool> expected(kPages, true);
  for (size_t i = 3; i < 30; ++i) expected[i] = false;
  EXPECT_EQ(ResidentPages(file->bytes(), page), expected);
  // Less than a page has no whole one.
  file->DropPages(file->bytes().subspan(35 * page + 1, page - 1));
  file->DropPages({});
  EXPECT_EQ(ResidentPages(file->bytes(), page), expected);

  EXPECT_EQ(file->text(), contents);
}

TEST(MappedFileDeathTest, DropsOnlyItsOwnPages) {
  const TempDir dir;
  const auto file = *MappedFile::Open(dir.Write("small", "1234"));
  EXPECT_DEATH(file->DropPages(AsBytes("other")), "not a part of");
}

}  // namespace
}  // namespace folio
