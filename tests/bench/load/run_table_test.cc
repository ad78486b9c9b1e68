#include "bench/load/run_table.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "bench/load/document.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Json = nlohmann::json;

absl::Duration Ms(double ms) { return absl::Milliseconds(ms); }

RunFacts Facts() {
  return {.name = "burst",
          .target = "openai://h:1/v1",
          .info = {.server = "llama.cpp"},
          .load = "4 requests at once"};
}

// TTFT 100 and 200, gaps 10 and 30; all in 2 s.
RunResult Result() {
  RunResult result;
  result.records = {
      {.samples = {{Ms(100), Ms(110)}}, .end = Ms(111), .prompt_tokens = 2000},
      {.samples = {{Ms(1970), Ms(2000)}},
       .end = Ms(2000.25),
       .prompt_tokens = 5},
      {.sent = Ms(0),
       .status = absl::UnavailableError("reset by peer"),
       .prompt_tokens = 4},
      {.sent = Ms(0), .status = absl::UnavailableError("another message")},
  };
  return result;
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n');
}

// The words of the line that begins with `start`.
std::vector<std::string> LineOf(const std::string& text,
                                const std::string& start) {
  for (const std::string& line : Lines(text)) {
    if (line.starts_with(start)) {
      return absl::StrSplit(line.substr(start.size()), ' ', absl::SkipEmpty());
    }
  }
  return {};
}

TEST(RunTableTest, SaysWhatTheDocumentSays) {
  const std::string table = RunTable(RunDocument(Facts(), Result(), {}));
  EXPECT_THAT(table, StartsWith("== burst\n4 requests at once\n"
                                "on openai://h:1/v1, llama.cpp\n\n"));
  EXPECT_THAT(LineOf(table, "latency, ms"),
              ElementsAre("mean", "p50", "p90", "p95", "p99", "max"));
  EXPECT_THAT(LineOf(table, "Time to first token"),
              ElementsAre("1035", "100.0", "1970", "1970", "1970", "1970"));
  EXPECT_THAT(
      LineOf(table, "Inter-token latency"),
      ElementsAre("20.00", "10.00", "30.00", "30.00", "30.00", "30.00"));
  // 11 and 30.25.
  EXPECT_THAT(
      LineOf(table, "Time per output token"),
      ElementsAre("20.62", "11.00", "30.25", "30.25", "30.25", "30.25"));
  EXPECT_THAT(table, Not(HasSubstr("Queue")));
  EXPECT_THAT(LineOf(table, "Duration"), ElementsAre("2.00", "s"));
  EXPECT_THAT(LineOf(table, "Requests  "), ElementsAre("4"));
  EXPECT_THAT(LineOf(table, "Served"), ElementsAre("2"));
  EXPECT_THAT(LineOf(table, "Input tokens"), ElementsAre("2005"));
  EXPECT_THAT(LineOf(table, "Output  "), ElementsAre("2.00", "tokens/s"));
  EXPECT_THAT(LineOf(table, "Requests served"),
              ElementsAre("1.00", "requests/s"));
  EXPECT_THAT(table, EndsWith("\n2 ended with UNAVAILABLE, such as: "
                              "reset by peer\n"));
  EXPECT_THAT(table, Not(HasSubstr("ended with OK")));
  for (const std::string& line : Lines(table)) EXPECT_LE(line.size(), 80u);
}

TEST(RunTableTest, NumbersHaveTheDigitsThatSaySomething) {
  RunResult result;
  for (const double ms : {0.0, 0.0625, 0.999, 9.5, 99.5}) {
    result.records.push_back({.samples = {{Ms(0), Ms(ms)}}, .end = Ms(ms)});
  }
  // 0, 0.0625, 0.999, 9.5 and 99.5: mean 22.0123.
  const std::string table = RunTable(RunDocument(Facts(), result, {}));
  EXPECT_THAT(
      LineOf(table, "End to end"),
      ElementsAre("22.01", "0.999", "99.50", "99.50", "99.50", "99.50"));
  EXPECT_THAT(LineOf(table, "Time to first token"),
              ElementsAre("0", "0", "0", "0", "0", "0"));
}

TEST(RunTableTest, Warns) {
  RunResult result = Result();
  result.batches = {{.sample = {.dropped = 3}}, {.sample = {.dropped = 4}}};
  ClientLag lag;
  lag.send.p99 = Ms(50);
  const std::string table = RunTable(RunDocument(Facts(), result, lag));
  EXPECT_THAT(table, HasSubstr("\nwarning: " + BottleneckNote(lag) + "\n"));
  EXPECT_THAT(table, HasSubstr("\nwarning: 7 batch reports"));
  result.batches[0].sample.dropped = 0;
  result.batches[1].sample.dropped = 0;
  EXPECT_THAT(RunTable(RunDocument(Facts(), result, {})),
              Not(HasSubstr("warning")));
}

TEST(SummaryTableTest, HasALineForEachRun) {
  RunFacts with_limits = Facts();
  with_limits.name = "a longer name, rate=2";
  with_limits.limits.ttft = Ms(100);
  const std::vector<Json> runs = {RunDocument(Facts(), Result(), {}),
                                  RunDocument(with_limits, Result(), {}),
                                  RunDocument(Facts(), {}, {})};
  const std::string table = SummaryTable(runs);
  const std::vector<std::string> lines = Lines(table);
  ASSERT_THAT(lines, SizeIs(5));  // And nothing after the last one.
  EXPECT_THAT(LineOf(lines[0], "run"),
              ElementsAre("served", "failed", "output/s", "TTFT", "p50", "p99",
                          "ITL", "p50", "p99,", "ms", "goodput/s"));
  EXPECT_THAT(
      LineOf(lines[1], "burst"),
      ElementsAre("2", "2", "2.00", "100.0", "1970", "10.00", "30.00", "-"));
  // One of the two was good, in 2 s.
  EXPECT_THAT(LineOf(lines[2], with_limits.name),
              ElementsAre("2", "2", "2.00", "100.0", "1970", "10.00", "30.00",
                          "0.500"));
  EXPECT_THAT(LineOf(lines[3], "burst"),
              ElementsAre("0", "0", "0", "-", "-", "-", "-", "-"));
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(lines[i].size(), lines[0].size());
}

// A document of another hand may lack some rows.
TEST(SummaryTableTest, HasADashForWhatIsNotThere) {
  const std::vector<Json> runs = {{{"name", "a"},
                                   {"distributions", Json::array()},
                                   {"totals", Json::array()}}};
  EXPECT_THAT(LineOf(SummaryTable(runs), "a "),
              ElementsAre("-", "-", "-", "-", "-", "-", "-", "-"));
}

}  // namespace
}  // namespace folio
