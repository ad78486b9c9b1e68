#include "bench/load/document.h"

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Json = nlohmann::json;

absl::Duration Ms(double ms) { return absl::Milliseconds(ms); }

Json Parse(const char* text) { return Json::parse(text); }

std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;  // In the order of the alphabet.
}

RunFacts Facts() {
  return {.name = "chat burst",
          .target = "folio://127.0.0.1:50051",
          .info = {.server = "Folio 0.1.0", .model = "random:llama-135m"},
          .seed = 18446744073709551615u,
          .command = "folio-load --seed 3",
          .load = "3 requests at once",
          .limits = {.ttft = Ms(120.5), .itl = Ms(50)},
          .offered_rate = 4.00049,
          .started = absl::FromUnixSeconds(1796014800)};
}

// The second one arrives first; the last one was never sent.
RunResult Result() {
  RunResult result;
  result.records = {
      {.name = "load-0",
       .tenant = "b",
       .arrival = Ms(200),
       .sent = Ms(200.5),
       .samples = {{Ms(120), Ms(120), Ms(150.06)}},
       .end = Ms(151),
       .prompt_tokens = 30,
       .queue_duration = Ms(12.3456)},
      {.name = "load-1",
       .arrival = Ms(100),
       .sent = Ms(100),
       .samples = {{Ms(130.04)}},
       .end = Ms(300),
       .status = absl::CancelledError("by the client"),
       .end_was_asked_for = true,
       .prompt_tokens = 20,
       .told_output_tokens = 4},
      {.name = "load-2",
       .arrival = Ms(200),
       .status = absl::AbortedError("not sent")},
  };
  return result;
}

Json DocumentOf(const RunResult& result) {
  return RunDocument(Facts(), result, {});
}

TEST(RunDocumentTest, HasTheFieldsOfItsFormat) {
  const Json run = DocumentOf(Result());
  EXPECT_THAT(Keys(run),
              ElementsAre("batches", "client", "command", "complete",
                          "distributions", "error", "limits", "load", "model",
                          "name", "offered_rate", "requests", "seed", "server",
                          "started", "statuses", "target", "totals"));
  EXPECT_EQ(run["name"], "chat burst");
  EXPECT_EQ(run["target"], "folio://127.0.0.1:50051");
  EXPECT_EQ(run["server"], "Folio 0.1.0");
  EXPECT_EQ(run["model"], "random:llama-135m");
  EXPECT_EQ(run["started"], "2026-11-30T05:00:00Z");
  EXPECT_EQ(run["seed"], 18446744073709551615u);
  EXPECT_EQ(run["command"], "folio-load --seed 3");
  EXPECT_EQ(run["load"], "3 requests at once");
  EXPECT_EQ(run["complete"], true);
  EXPECT_EQ(run["error"], "");
  EXPECT_EQ(run["limits"], Parse(R"({"ttft": 120.5, "itl": 50})"));
  EXPECT_EQ(run["offered_rate"], 4);
  EXPECT_EQ(run["batches"], nullptr);
  EXPECT_EQ(run["statuses"],
            Parse(R"({"OK": 1, "CANCELLED": 1, "ABORTED": 1})"));
}

TEST(RunDocumentTest, SaysThatARunBrokeOff) {
  RunResult result = Result();
  result.broke_off = absl::UnavailableError("no answer");
  const Json run = DocumentOf(result);
  EXPECT_EQ(run["complete"], false);
  EXPECT_EQ(run["error"], "no answer");
}

TEST(RunDocumentTest, HasNullForWhatIsNotThere) {
  RunFacts facts = Facts();
  facts.limits = {};
  facts.offered_rate = std::nullopt;
  const Json run = RunDocument(facts, Result(), {});
  EXPECT_EQ(run["limits"], nullptr);
  EXPECT_EQ(run["offered_rate"], nullptr);
  for (const Json& row : run["totals"]) EXPECT_NE(row["key"], "goodput");
}

TEST(RunDocumentTest, HasRequestsAsColumnsInTheOrderOfArrival) {
  const Json expected = Parse(R"({
    "name": ["load-1", "load-0", "load-2"],
    "tenant": ["", "b", ""],
    "arrival_ms": [100, 200, 200],
    "sent_ms": [100, 200.5, null],
    "first_token_ms": [130.04, 120, null],
    "end_ms": [300, 151, null],
    "queue_ms": [null, 12.346, null],
    "n": [1, 1, 1],
    "reads_slowly": [false, false, false],
    "prompt_tokens": [20, 30, 0],
    "output_tokens": [4, 3, 0],
    "status": ["CANCELLED", "OK", "ABORTED"],
    "message": ["by the client", "", "not sent"],
    "gaps": [[], [0, 301], []]
  })");
  EXPECT_EQ(DocumentOf(Result())["requests"], expected);
}

// TTFT 120 and 130.04; the gaps are 0 and 30.06, TPOT (151 - 120) / 2.
TEST(RunDocumentTest, HasDistributions) {
  const Json run = DocumentOf(Result());
  std::vector<std::string> keys;
  for (const Json& row : run["distributions"]) {
    keys.push_back(row["key"]);
    EXPECT_THAT(Keys(row),
                ElementsAre("count", "formula", "key", "max", "mean", "name",
                            "p50", "p90", "p95", "p99", "unit"));
    EXPECT_EQ(row["unit"], "ms");
    EXPECT_NE(row["name"], "");
    EXPECT_NE(row["formula"], "");
  }
  EXPECT_THAT(keys, ElementsAre("ttft", "itl", "tpot", "e2e", "queue"));
  const Json& ttft = run["distributions"][0];
  EXPECT_EQ(ttft["count"], 2);
  EXPECT_EQ(ttft["mean"], 125.02);
  EXPECT_EQ(ttft["p50"], 120);
  EXPECT_EQ(ttft["p90"], 130.04);
  EXPECT_EQ(ttft["max"], 130.04);
  EXPECT_EQ(run["distributions"][1]["mean"], 15.03);
  EXPECT_EQ(run["distributions"][2]["max"], 15.5);
  EXPECT_EQ(run["distributions"][3]["p99"], 151);
  EXPECT_EQ(run["distributions"][4]["mean"], 12.346);
}

// Each statistic in its place.
TEST(RunDocumentTest, HasEachPercentile) {
  RunResult result;
  for (int i = 1; i <= 200; ++i) {
    result.records.push_back({.samples = {{Ms(i)}}, .end = Ms(i)});
  }
  const Json ttft = DocumentOf(result)["distributions"][0];
  EXPECT_EQ(ttft["p50"], 100);
  EXPECT_EQ(ttft["p90"], 180);
  EXPECT_EQ(ttft["p95"], 190);
  EXPECT_EQ(ttft["p99"], 198);
  EXPECT_EQ(ttft["max"], 200);
}

TEST(RunDocumentTest, LeavesOutDistributionsOfNothing) {
  RunResult result = Result();
  result.records.erase(result.records.begin());
  const Json run = DocumentOf(result);
  ASSERT_THAT(run["distributions"], SizeIs(1));
  EXPECT_EQ(run["distributions"][0]["key"], "ttft");
}

// From 100 to the last token, 200 + 150.06: 250.06 ms.
TEST(RunDocumentTest, HasTotals) {
  const Json run = DocumentOf(Result());
  Json values = Json::object();
  for (const Json& row : run["totals"]) {
    EXPECT_THAT(Keys(row),
                ElementsAre("formula", "key", "name", "unit", "value"));
    EXPECT_NE(row["formula"], "");
    values[row["key"].get<std::string>()] = row["value"];
  }
  EXPECT_EQ(values, Parse(R"({
    "duration": 0.25, "requests": 3, "served": 1, "ended_as_asked": 1,
    "not_sent": 1, "failed": 0,
    "input_tokens": 50, "cached_input_tokens": 0, "output_tokens": 7,
    "output_tokens_per_second": 27.993,
    "input_tokens_per_second": 199.952,
    "total_tokens_per_second": 227.945,
    "requests_per_second": 3.999,
    "goodput": 3.999
  })"));
}

TEST(RunDocumentTest, HasTheClientsLag) {
  const ClientLag lag{
      .timer = {.count = 7, .mean = Ms(1), .p50 = Ms(2), .p99 = Ms(4)},
      .send = {.count = 3, .p90 = Ms(6), .p99 = Ms(25), .max = Ms(99.9994)},
      .busy_cores = 0.12345};
  const Json client = RunDocument(Facts(), Result(), lag)["client"];
  EXPECT_THAT(Keys(client), ElementsAre("cpu_share", "is_bottleneck", "note",
                                        "send_lag_ms", "timer_lag_ms"));
  EXPECT_EQ(client["send_lag_ms"], Parse(R"({"count": 3, "mean": 0, "p50": 0,
      "p90": 6, "p95": 0, "p99": 25, "max": 99.999})"));
  EXPECT_EQ(client["timer_lag_ms"]["p50"], 2);
  EXPECT_EQ(client["cpu_share"], 0.123);
  EXPECT_EQ(client["is_bottleneck"], true);
  EXPECT_EQ(client["note"], BottleneckNote(lag));
  const Json other = DocumentOf(Result())["client"];
  EXPECT_EQ(other["is_bottleneck"], false);
  EXPECT_EQ(other["note"], "");
}

RunBatch Batch(int i) {
  return {.start = Ms(10) * i - Ms(5),
          .sample = {.step = 100 + i,
                     .duration = Ms(8),
                     .forward_duration = Ms(7),
                     .prefill_tokens = i,
                     .decode_tokens = 3,
                     .running = i + 1,
                     .waiting = i + 2,
                     .preempted = i % 2,
                     .pages_evicted = i % 3,
                     .page_size = 16,
                     .page_bytes = 368640,
                     .bytes_per_token = 23040,
                     .pages_total = 728,
                     .pages_free = i + 3,
                     .pages_in_use = i + 4,
                     .pages_cached = i + 5,
                     .pages_shared = i + 6,
                     .tokens_held = i + 7,
                     .waste_bytes = i + 8,
                     .dropped = i == 1 ? 2 : 0}};
}

Json BatchesOf(int count) {
  RunResult result = Result();
  for (int i = 0; i < count; ++i) result.batches.push_back(Batch(i));
  return DocumentOf(result)["batches"];
}

TEST(RunDocumentTest, HasARowForEachBatch) {
  const Json batches = BatchesOf(2);
  EXPECT_THAT(Keys(batches), ElementsAre("columns", "dropped", "maps", "pool"));
  EXPECT_EQ(batches["pool"], Parse(R"({"page_size": 16, "page_bytes": 368640,
      "bytes_per_token": 23040, "pages_total": 728})"));
  EXPECT_EQ(batches["dropped"], 2);
  EXPECT_EQ(batches["columns"], Parse(R"({
    "start_ms": [-5, 5], "duration_ms": [8, 8], "forward_ms": [7, 7],
    "steps": [1, 1], "prefill_tokens": [0, 1], "decode_tokens": [3, 3],
    "running": [1, 2], "waiting": [2, 3], "preempted": [0, 1],
    "evicted": [0, 1], "pages_free": [3, 4], "pages_in_use": [4, 5],
    "pages_cached": [5, 6], "pages_shared": [6, 7], "tokens_held": [7, 8],
    "waste_bytes": [8, 9]
  })"));
}

int64_t Sum(const Json& column) {
  int64_t sum = 0;
  for (const Json& value : column) sum += value.get<int64_t>();
  return sum;
}

TEST(RunDocumentTest, MergesBatchesBeyondFourThousand) {
  for (const int count : {3999, 4000, 4001, 8000, 8001, 10007}) {
    SCOPED_TRACE(count);
    const Json columns = BatchesOf(count)["columns"];
    const size_t rows = columns["steps"].size();
    EXPECT_LE(rows, 4000u);
    EXPECT_EQ(rows, count <= 4000   ? count
                    : count <= 8000 ? (count + 1) / 2
                                    : (count + 2) / 3);
    for (const Json& column : columns) EXPECT_THAT(column, SizeIs(rows));
    // Sums are kept.
    EXPECT_EQ(Sum(columns["steps"]), count);
    EXPECT_EQ(Sum(columns["duration_ms"]), 8 * count);
    EXPECT_EQ(Sum(columns["forward_ms"]), 7 * count);
    EXPECT_EQ(Sum(columns["decode_tokens"]), 3 * count);
    EXPECT_EQ(Sum(columns["prefill_tokens"]), int64_t{count} * (count - 1) / 2);
    EXPECT_EQ(Sum(columns["preempted"]), count / 2);
    // 0, 1, 2, 0, 1, ...
    EXPECT_EQ(Sum(columns["evicted"]),
              count / 3 * 3 + (count % 3 == 2 ? 1 : 0));
    // States are those of a row's last step, and its time that of the first.
    int64_t last = -1;
    for (size_t row = 0; row < rows; ++row) {
      ASSERT_EQ(columns["start_ms"][row], 10 * (last + 1) - 5);
      last += columns["steps"][row].get<int64_t>();
      ASSERT_EQ(columns["running"][row], last + 1);
      ASSERT_EQ(columns["waiting"][row], last + 2);
      ASSERT_EQ(columns["pages_free"][row], last + 3);
      ASSERT_EQ(columns["pages_in_use"][row], last + 4);
      ASSERT_EQ(columns["pages_cached"][row], last + 5);
      ASSERT_EQ(columns["pages_shared"][row], last + 6);
      ASSERT_EQ(columns["tokens_held"][row], last + 7);
      ASSERT_EQ(columns["waste_bytes"][row], last + 8);
    }
  }
}

TEST(RunDocumentTest, AMapShowsWhoHasWhat) {
  RunResult result = Result();
  result.batches = {Batch(2)};
  result.batches[0].sample.sequences = {
      {.request = "load-0", .pages = 5, .shared_pages = 2, .tokens = 77},
      {.request = "", .pages = 1, .shared_pages = 0, .tokens = 3}};
  EXPECT_EQ(DocumentOf(result)["batches"]["maps"], Parse(R"([
    {"step": 102, "time_ms": 15, "pages_free": 5, "pages_in_use": 6,
     "pages_cached": 7, "pages_shared": 8,
     "sequences": [["load-0", 5, 2, 77], ["", 1, 0, 3]]}
  ])"));
}

// Up to 40 steps, of those whose sequences are known: the first, the last, the
// fullest, others at even distances.
TEST(RunDocumentTest, ChoosesMaps) {
  for (const int count : {1, 2, 3, 37, 38, 39, 40, 41, 77, 500, 4001}) {
    SCOPED_TRACE(count);
    const int fullest = count * 2 / 3;
    RunResult result = Result();
    for (int i = 0; i < count; ++i) {
      result.batches.push_back(Batch(i));
      result.batches[i].sample.pages_in_use = i == fullest ? 9999 : i;
      result.batches[i].sample.sequences = {{.request = "load-0"}};
    }
    const Json maps = DocumentOf(result)["batches"]["maps"];
    std::vector<int> chosen;
    for (const Json& map : maps) chosen.push_back(map["step"].get<int>() - 100);
    EXPECT_TRUE(std::ranges::is_sorted(chosen));
    EXPECT_THAT(std::set<int>(chosen.begin(), chosen.end()),
                SizeIs(chosen.size()));
    EXPECT_LE(chosen.size(), 40u);
    EXPECT_GE(chosen.size(), std::min(count, 20));
    EXPECT_EQ(chosen.front(), 0);
    EXPECT_EQ(chosen.back(), count - 1);
    EXPECT_TRUE(std::ranges::count(chosen, fullest) == 1);
    for (size_t i = 1; i < chosen.size(); ++i) {
      EXPECT_LE(chosen[i] - chosen[i - 1], count / 38 + 1);
    }
  }
}

// So that it is no longer than it says.
TEST(RunDocumentTest, NumbersHaveAtMostThreeDecimals) {
  RunResult result;
  for (int i = 1; i <= 7; ++i) {
    result.records.push_back({.arrival = Ms(100.0 * i / 7),
                              .sent = Ms(101.0 * i / 7),
                              .samples = {{Ms(55.0 / i), Ms(190.0 / i)}},
                              .end = Ms(290.0 / i),
                              .queue_duration = Ms(5.0 / i)});
  }
  result.batches = {Batch(0)};
  result.batches[0].start = Ms(1.0 / 3);
  result.batches[0].sample.duration = Ms(2.0 / 3);
  result.batches[0].sample.forward_duration = Ms(1.0 / 7);
  const std::function<void(const Json&)> check = [&](const Json& json) {
    if (json.is_number_float()) {
      const auto value = json.get<double>();
      EXPECT_EQ(value, std::round(value * 1000) / 1000);
    }
    if (!json.is_structured()) return;
    for (const Json& child : json) check(child);
  };
  check(DocumentOf(result));
}

TEST(ParseDocumentTest, ReadsWhatWasWritten) {
  const std::vector<Json> runs = {DocumentOf(Result()), DocumentOf({})};
  const Json document = Document(runs);
  EXPECT_EQ(document["format"], "folio-load 1");
  EXPECT_THAT(Keys(document), ElementsAre("format", "runs"));
  const auto parsed = ParseDocument(document.dump(), "a.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, runs);
  EXPECT_THAT(*ParseDocument(Document({}).dump(), "a.json"), SizeIs(0));
}

TEST(ParseDocumentTest, RefusesWhatIsNone) {
  for (const char* const text :
       {"", "{", "[]", "3", "null", "{}", R"({"format": "folio-load 1"})",
        R"({"runs": []})", R"({"format": "folio-load 2", "runs": []})",
        R"({"format": 1, "runs": []})",
        R"({"format": "folio-load 1", "runs": {}})",
        R"({"format": "folio-load 1", "runs": [1]})",
        R"({"format": "folio-load 1", "runs": [{"name": "a"}]})",
        R"({"format": "folio-load 1", "runs": []} x)"}) {
    const auto runs = ParseDocument(text, "a.json");
    EXPECT_EQ(runs.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(runs.status().message(),
                AllOf(HasSubstr("'a.json'"), HasSubstr("folio-load --json")));
  }
}

}  // namespace
}  // namespace folio
