#include "runtime/server/request_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

TokenEvent Terminal(FinishReason reason) {
  TokenEvent event;
  event.terminal = true;
  event.finish_reason = reason;
  event.usage = {.prompt_tokens = 40,
                 .generated_tokens = 3,
                 .cached_tokens = 32,
                 .preemptions = 1,
                 .peak_pages = 6,
                 .queue_duration = absl::Milliseconds(1),
                 .prefill_duration = absl::Microseconds(2500),
                 .decode_duration = absl::Seconds(4)};
  return event;
}

RequestFacts Facts() {
  return {.name = "r-1", .tenant = "acme", .n = 2, .prompt = "secret words"};
}

// 2023-11-14 22:13:20 UTC, and a quarter of a second.
absl::Time End() {
  return absl::FromUnixSeconds(1700000000) + absl::Milliseconds(250);
}

class RequestLogTest : public testing::Test {
 protected:
  std::unique_ptr<RequestLog> Open(bool prompts = false) {
    auto log = RequestLog::Open({.path = path_, .prompts = prompts}, "tiny");
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }

  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  json OnlyLine() const {
    const std::vector<std::string> lines = Lines();
    EXPECT_EQ(lines.size(), 1u);
    return json::parse(lines.at(0));
  }

  TempDir dir_;
  std::string path_ = dir_.path() + "/requests.log";
};

TEST_F(RequestLogTest, WritesWhatIsKnownAndNoPrompt) {
  const auto log = Open();
  EXPECT_FALSE(log->has_prompts());
  log->Write(Facts(), Terminal(FinishReason::kStop), End());
  const json expected = {{"time", "2023-11-14T22:13:20.250Z"},
                         {"request_id", "r-1"},
                         {"tenant", "acme"},
                         {"model", "tiny"},
                         {"n", 2},
                         {"finish_reason", "stop"},
                         {"status", "OK"},
                         {"prompt_tokens", 40},
                         {"cached_tokens", 32},
                         {"generated_tokens", 3},
                         {"preemptions", 1},
                         {"peak_pages", 6},
                         {"queue_ms", 1.0},
                         {"prefill_ms", 2.5},
                         {"decode_ms", 4000.0},
                         {"e2e_ms", 4003.5},
                         {"ttft_ms", 3.5}};
  EXPECT_EQ(OnlyLine(), expected);
}

TEST_F(RequestLogTest, HasPromptsWhenAsked) {
  const auto log = Open(/*prompts=*/true);
  EXPECT_TRUE(log->has_prompts());
  log->Write(Facts(), Terminal(FinishReason::kStop), End());
  EXPECT_EQ(OnlyLine().at("prompt"), "secret words");
}

TEST_F(RequestLogTest, HasNoFirstTokenWhereThereWasNone) {
  TokenEvent terminal = Terminal(FinishReason::kDeadline);
  terminal.usage.generated_tokens = 0;
  Open()->Write(Facts(), terminal, End());
  EXPECT_TRUE(OnlyLine().at("ttft_ms").is_null());
}

TEST_F(RequestLogTest, NamesEveryEnd) {
  const auto log = Open();
  const std::vector<std::pair<FinishReason, std::vector<std::string>>> ends = {
      {FinishReason::kStop, {"stop", "OK"}},
      {FinishReason::kLength, {"length", "OK"}},
      {FinishReason::kCancelled, {"abort", "CANCELLED"}},
      {FinishReason::kAborted, {"abort", "ABORTED"}},
      {FinishReason::kDeadline, {"deadline", "DEADLINE_EXCEEDED"}},
      {FinishReason::kShutdown, {"shutdown", "UNAVAILABLE"}},
      {FinishReason::kError, {"error", "INTERNAL"}}};
  for (const auto& [reason, names] : ends) {
    log->Write(Facts(), Terminal(reason), End());
  }
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), ends.size());
  for (size_t i = 0; i < ends.size(); ++i) {
    const json line = json::parse(lines[i]);
    EXPECT_EQ(line.at("finish_reason"), ends[i].second[0]);
    EXPECT_EQ(line.at("status"), ends[i].second[1]);
  }
}

// Names are the client's: they can neither end a line nor break the JSON.
TEST_F(RequestLogTest, KeepsAnyNameInItsPlace) {
  const auto log = Open(/*prompts=*/true);
  RequestFacts facts = Facts();
  facts.name = "a\"}\n{\"b";
  facts.tenant = "\xff\xfe";
  facts.prompt = std::string("\0\x1f\xc3", 3);
  log->Write(facts, Terminal(FinishReason::kStop), End());
  const json line = OnlyLine();
  EXPECT_EQ(line.at("request_id"), facts.name);
  EXPECT_EQ(line.at("tenant"), "\uFFFD\uFFFD");
  EXPECT_EQ(line.at("prompt"), std::string("\0\x1f\uFFFD", 5));
}

TEST_F(RequestLogTest, AppendsToWhatIsThere) {
  Open()->Write(Facts(), Terminal(FinishReason::kStop), End());
  Open()->Write(Facts(), Terminal(FinishReason::kLength), End());
  EXPECT_EQ(Lines().size(), 2u);
  struct stat status;
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07, 0u) << "others may read who asks for what";
}

TEST_F(RequestLogTest, WritesToStderr) {
  // It keeps the descriptor 2 of this moment.
  testing::internal::CaptureStderr();
  const auto log = RequestLog::Open({.path = "-"}, "tiny");
  ASSERT_TRUE(log.ok()) << log.status();
  (*log)->Write(Facts(), Terminal(FinishReason::kStop), End());
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(json::parse(text).at("request_id"), "r-1");
}

TEST_F(RequestLogTest, NamesAFileThatCannotBeOpened) {
  const absl::Status status =
      RequestLog::Open({.path = dir_.path() + "/none/x"}, "tiny").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/none/x"));
  EXPECT_FALSE(RequestLog::Open({.path = dir_.path()}, "tiny").ok());
}

TEST_F(RequestLogTest, ReportsAFailedWriteOnceAndGoesOn) {
  auto log = RequestLog::Open({.path = "/dev/full"}, "tiny");
  ASSERT_TRUE(log.ok()) << log.status();
  const auto write = [&] {
    testing::internal::CaptureStderr();
    (*log)->Write(Facts(), Terminal(FinishReason::kStop), End());
    return testing::internal::GetCapturedStderr();
  };
  const std::string first = write();
  EXPECT_THAT(first, HasSubstr("/dev/full"));
  EXPECT_THAT(first, HasSubstr("No space left on device"));
  EXPECT_THAT(first, Not(HasSubstr("secret")));
  EXPECT_EQ(write(), "");
}

// Whoever holds the pipe reads nothing: lines are lost, and nobody waits.
TEST_F(RequestLogTest, DoesNotWaitForAFullPipe) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const int reader = open(path_.c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  const auto log = Open();
  for (int i = 0; i < 2000; ++i) {  // Some 800 KB.
    log->Write(Facts(), Terminal(FinishReason::kStop), End());
  }
  // What came is whole lines, and at most one that is cut.
  std::string contents(1 << 20, '\0');
  contents.resize(read(reader, contents.data(), contents.size()));
  EXPECT_GT(contents.size(), 1000u);
  log->Write(Facts(), Terminal(FinishReason::kStop), End());
  std::string next(1 << 16, '\0');
  next.resize(read(reader, next.data(), next.size()));
  EXPECT_EQ(next.front(), '\n');
  EXPECT_TRUE(json::accept(next.substr(1)));
  close(reader);
}

TEST_F(RequestLogTest, SurvivesThatNobodyReadsThePipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  auto log = RequestLog::Open({.path = absl::StrCat("/proc/self/fd/", ends[1])},
                              "tiny");
  ASSERT_TRUE(log.ok()) << log.status();
  close(ends[0]);
  testing::internal::CaptureStderr();
  (*log)->Write(Facts(), Terminal(FinishReason::kStop), End());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("Broken pipe"));
  close(ends[1]);
}

}  // namespace
}  // namespace folio
