// When files are read again, and what counts meanwhile.

#include "runtime/server/reloaded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/runtime/server/error_log.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReloadedTest : public testing::Test {
 protected:
  // A value that is whatever next_ is when its files are read.
  std::unique_ptr<Reloaded<int>> Load() {
    auto loaded = Reloaded<int>::Load({a_, b_}, [this] {
      ++num_reads_;
      return next_;
    });
    EXPECT_EQ(loaded.status(), absl::OkStatus());
    return *std::move(loaded);
  }

  TempDir dir_;
  const std::string a_ = dir_.Write("a", "");
  const std::string b_ = dir_.Write("b", "");
  absl::StatusOr<int> next_ = 1;
  int num_reads_ = 0;
};

TEST_F(ReloadedTest, FailsAsTheFirstReadingDoes) {
  const auto loaded = Reloaded<int>::Load(
      {a_}, []() -> absl::StatusOr<int> { return absl::NotFoundError("it"); });
  EXPECT_EQ(loaded.status(), absl::NotFoundError("it"));
}

TEST_F(ReloadedTest, ReadsOnceForEachChangeOfAnyFile) {
  const auto value = Load();
  next_ = 2;
  EXPECT_EQ(*value->Current(), 1);
  EXPECT_EQ(num_reads_, 1);
  const auto old = value->Current();
  dir_.Write("b", "changed");
  EXPECT_EQ(*value->Current(), 2);
  EXPECT_EQ(*value->Current(), 2);
  EXPECT_EQ(num_reads_, 2);
  next_ = 3;
  dir_.Write("a", "changed");
  EXPECT_EQ(*value->Current(), 3);
  EXPECT_EQ(num_reads_, 3);
  EXPECT_EQ(*old, 1);  // Whoever has it keeps it.
}

TEST_F(ReloadedTest, ReadsWhatIsWrongOnceUntilItChanges) {
  const auto value = Load();
  const ErrorLog errors;
  next_ = absl::InvalidArgumentError("nonsense");
  dir_.Write("a", "nonsense");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*value->Current(), 1);
  EXPECT_EQ(num_reads_, 2);
  EXPECT_THAT(errors.messages(), ElementsAre(HasSubstr("nonsense")));
}

// A process that has no descriptor left must not miss a change for good.
TEST_F(ReloadedTest, TriesAgainWhereReadingFailed) {
  const auto value = Load();
  const ErrorLog errors;
  next_ = absl::UnavailableError("too many open files");
  dir_.Write("a", "changed");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*value->Current(), 1);
  EXPECT_EQ(num_reads_, 4);
  EXPECT_THAT(errors.messages(), ElementsAre(HasSubstr("too many open files")));
  next_ = 2;
  EXPECT_EQ(*value->Current(), 2);
  next_ = absl::UnavailableError("too many open files");
  dir_.Write("a", "changed again");
  EXPECT_EQ(*value->Current(), 2);
  EXPECT_EQ(errors.messages().size(), 2u);  // It is news again.
}

TEST(ReadSmallFile, TellsWhatCannotBeRead) {
  const TempDir dir;
  const std::string contents(100'000, '\0');
  EXPECT_EQ(*ReadSmallFile(dir.Write("f", contents)), contents);
  EXPECT_TRUE(absl::IsNotFound(ReadSmallFile(dir.path() + "/g").status()));
  EXPECT_TRUE(absl::IsUnavailable(ReadSmallFile(dir.path()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadSmallFile("/dev/zero").status()));
}

}  // namespace
}  // namespace folio
