// How a command's end becomes the end of the process.

#include "runtime/cli/command_line.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"

namespace folio {
namespace {

struct Ending {
  int exit_status;
  std::string errors;  // On stderr.
};

Ending EndingOf(const CommandRun& run) {
  testing::internal::CaptureStderr();
  const int exit_status = RunToExitStatus("folio", run);
  return {exit_status, testing::internal::GetCapturedStderr()};
}

TEST(RunToExitStatus, IsZeroWithoutAnError) {
  const Ending ending = EndingOf([] { return absl::OkStatus(); });
  EXPECT_EQ(ending.exit_status, 0);
  EXPECT_EQ(ending.errors, "");
}

TEST(RunToExitStatus, MakesAnErrorOneLine) {
  const Ending ending =
      EndingOf([] { return absl::NotFoundError("one\r\ntwo"); });
  EXPECT_EQ(ending.exit_status, 1);
  EXPECT_EQ(ending.errors, "folio: one two\n");
}

TEST(RunToExitStatus, SaysThatMemoryRanOut) {
  const Ending ending =
      EndingOf([]() -> absl::Status { throw std::bad_alloc(); });
  EXPECT_EQ(ending.exit_status, 1);
  EXPECT_EQ(ending.errors, "folio: out of memory\n");
}

TEST(RunToExitStatus, MakesAnyOtherExceptionAnError) {
  const Ending ending = EndingOf(
      []() -> absl::Status { throw std::runtime_error("a library\ngave up"); });
  EXPECT_EQ(ending.exit_status, 1);
  EXPECT_EQ(ending.errors, "folio: a library gave up\n");
}

}  // namespace
}  // namespace folio
