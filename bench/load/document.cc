#include "bench/load/document.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/weights/json_file.h"

namespace folio {
namespace {

using Json = nlohmann::json;

constexpr char kFormat[] = "folio-load 1";
constexpr size_t kMaxBatchRows = 4000;
constexpr size_t kMaxMaps = 40;

// The definitions that a document states beside the numbers.
struct MetricRow {
  const char* key;
  const char* name;
  const char* formula;
  DurationSummary LoadMetrics::*summary;
};

constexpr MetricRow kMetricRows[] = {
    {"ttft", "Time to first token",
     "first token of any sample - scheduled arrival", &LoadMetrics::ttft},
    {"itl", "Inter-token latency",
     "every gap between two tokens of a sample; 0 between those of one message",
     &LoadMetrics::itl},
    {"tpot", "Time per output token",
     "(E2E - TTFT) / (output tokens of the longest sample - 1), of requests "
     "served to their end",
     &LoadMetrics::tpot},
    {"e2e", "End to end",
     "end of the response - scheduled arrival, of requests served to their end",
     &LoadMetrics::e2e},
    {"queue", "Queue time",
     "from arrival to the first step, as the server says, of requests served "
     "to their end",
     &LoadMetrics::queue},
};

// Values with a name and a formula.
struct TotalRow {
  const char* key;
  const char* name;
  const char* unit;
  const char* formula;
  double (*value)(const LoadMetrics&);
};

constexpr TotalRow kTotalRows[] = {
    {"duration", "Duration", "s", "last token - first scheduled arrival",
     [](const LoadMetrics& m) { return absl::ToDoubleSeconds(m.duration); }},
    {"requests", "Requests", "", "in the load",
     [](const LoadMetrics& m) { return static_cast<double>(m.requests); }},
    {"served", "Served", "", "requests that ended with OK",
     [](const LoadMetrics& m) { return static_cast<double>(m.served); }},
    {"ended_as_asked", "Ended by the load", "",
     "by its cancels and deadlines, before they were served",
     [](const LoadMetrics& m) {
       return static_cast<double>(m.ended_as_asked);
     }},
    {"not_sent", "Not sent", "",
     "the run broke off, or the turn before was not served",
     [](const LoadMetrics& m) { return static_cast<double>(m.not_sent); }},
    {"failed", "Failed", "", "all others",
     [](const LoadMetrics& m) { return static_cast<double>(m.failed); }},
    {"input_tokens", "Input tokens", "", "prompts of requests that got a token",
     [](const LoadMetrics& m) { return static_cast<double>(m.input_tokens); }},
    {"cached_input_tokens", "Cached input tokens", "",
     "of those, whose K/V the server says it had already",
     [](const LoadMetrics& m) {
       return static_cast<double>(m.cached_input_tokens);
     }},
    {"output_tokens", "Output tokens", "", "of all samples",
     [](const LoadMetrics& m) { return static_cast<double>(m.output_tokens); }},
    {"output_tokens_per_second", "Output", "tokens/s",
     "output tokens / duration",
     [](const LoadMetrics& m) { return m.output_tokens_per_second; }},
    {"input_tokens_per_second", "Input", "tokens/s", "input tokens / duration",
     [](const LoadMetrics& m) { return m.input_tokens_per_second; }},
    {"total_tokens_per_second", "Total", "tokens/s",
     "(input + output tokens) / duration",
     [](const LoadMetrics& m) { return m.total_tokens_per_second; }},
    {"requests_per_second", "Requests served", "requests/s",
     "served / duration",
     [](const LoadMetrics& m) { return m.requests_per_second; }},
};

constexpr TotalRow kGoodput = {
    "goodput", "Goodput", "requests/s",
    "requests served within the limits (of a request's gaps: 99%) / duration",
    [](const LoadMetrics& m) { return m.goodput; }};

double Rounded(double value) { return std::round(value * 1000) / 1000; }

double Ms(absl::Duration duration) {
  return Rounded(absl::ToDoubleMilliseconds(duration));
}

Json OptionalMs(std::optional<absl::Duration> duration) {
  return duration.has_value() ? Json(Ms(*duration)) : Json();
}

Json SummaryOf(const DurationSummary& summary) {
  return {{"count", summary.count}, {"mean", Ms(summary.mean)},
          {"p50", Ms(summary.p50)}, {"p90", Ms(summary.p90)},
          {"p95", Ms(summary.p95)}, {"p99", Ms(summary.p99)},
          {"max", Ms(summary.max)}};
}

Json Distributions(const LoadMetrics& metrics) {
  Json rows = Json::array();
  for (const MetricRow& row : kMetricRows) {
    const DurationSummary& summary = metrics.*row.summary;
    if (summary.count == 0) continue;
    Json entry = SummaryOf(summary);
    entry["key"] = row.key;
    entry["name"] = row.name;
    entry["unit"] = "ms";
    entry["formula"] = row.formula;
    rows.push_back(std::move(entry));
  }
  return rows;
}

Json TotalOf(const TotalRow& row, const LoadMetrics& metrics) {
  return {{"key", row.key},
          {"name", row.name},
          {"unit", row.unit},
          {"formula", row.formula},
          {"value", Rounded(row.value(metrics))}};
}

Json LimitsOf(const LatencyLimits& limits) {
  Json json = Json::object();
  const auto add = [&json](const char* key,
                           std::optional<absl::Duration> limit) {
    if (limit.has_value()) json[key] = Ms(*limit);
  };
  add("ttft", limits.ttft);
  add("itl", limits.itl);
  add("tpot", limits.tpot);
  add("e2e", limits.e2e);
  return json.empty() ? Json() : json;
}

Json Totals(const LoadMetrics& metrics, bool has_limits) {
  Json rows = Json::array();
  for (const TotalRow& row : kTotalRows) rows.push_back(TotalOf(row, metrics));
  if (has_limits) rows.push_back(TotalOf(kGoodput, metrics));
  return rows;
}

// Of all samples, in the order of time.
Json GapsOf(const RequestRecord& record) {
  Json gaps = Json::array();
  for (const absl::Duration gap : Gaps(record)) {
    gaps.push_back(std::llround(absl::ToDoubleMicroseconds(gap) / 100));
  }
  return gaps;
}

// In the order of their arrivals.
Json RequestColumns(std::span<const RequestRecord> records) {
  std::vector<const RequestRecord*> order;
  for (const RequestRecord& record : records) order.push_back(&record);
  std::ranges::stable_sort(order, {},
                           [](const RequestRecord* r) { return r->arrival; });
  Json columns;
  for (const char* key :
       {"name", "tenant", "arrival_ms", "sent_ms", "first_token_ms", "end_ms",
        "queue_ms", "n", "reads_slowly", "prompt_tokens", "output_tokens",
        "status", "message", "gaps"}) {
    columns[key] = Json::array();
  }
  for (const RequestRecord* const record : order) {
    columns["name"].push_back(record->name);
    columns["tenant"].push_back(record->tenant);
    columns["arrival_ms"].push_back(Ms(record->arrival));
    columns["sent_ms"].push_back(OptionalMs(record->sent));
    columns["first_token_ms"].push_back(OptionalMs(TimeToFirstToken(*record)));
    columns["end_ms"].push_back(OptionalMs(record->end));
    columns["queue_ms"].push_back(OptionalMs(record->queue_duration));
    columns["n"].push_back(record->n);
    columns["reads_slowly"].push_back(record->reads_slowly);
    columns["prompt_tokens"].push_back(record->prompt_tokens);
    columns["output_tokens"].push_back(OutputTokens(*record));
    columns["status"].push_back(
        absl::StatusCodeToString(record->status.code()));
    columns["message"].push_back(std::string(record->status.message()));
    columns["gaps"].push_back(GapsOf(*record));
  }
  return columns;
}

// Of `steps` batches in a row.
void AddBatchRow(std::span<const RunBatch> steps, Json& columns) {
  absl::Duration duration;
  absl::Duration forward;
  int64_t prefill = 0;
  int64_t decode = 0;
  int64_t preempted = 0;
  int64_t evicted = 0;
  for (const RunBatch& batch : steps) {
    duration += batch.sample.duration;
    forward += batch.sample.forward_duration;
    prefill += batch.sample.prefill_tokens;
    decode += batch.sample.decode_tokens;
    preempted += batch.sample.preempted;
    evicted += batch.sample.pages_evicted;
  }
  const BatchSample& last = steps.back().sample;
  columns["start_ms"].push_back(Ms(steps.front().start));
  columns["duration_ms"].push_back(Ms(duration));
  columns["forward_ms"].push_back(Ms(forward));
  columns["steps"].push_back(steps.size());
  columns["prefill_tokens"].push_back(prefill);
  columns["decode_tokens"].push_back(decode);
  columns["preempted"].push_back(preempted);
  columns["evicted"].push_back(evicted);
  columns["running"].push_back(last.running);
  columns["waiting"].push_back(last.waiting);
  columns["pages_free"].push_back(last.pages_free);
  columns["pages_in_use"].push_back(last.pages_in_use);
  columns["pages_cached"].push_back(last.pages_cached);
  columns["pages_shared"].push_back(last.pages_shared);
  columns["tokens_held"].push_back(last.tokens_held);
  columns["waste_bytes"].push_back(last.waste_bytes);
}

Json MapOf(const RunBatch& batch) {
  const BatchSample& sample = batch.sample;
  Json sequences = Json::array();
  for (const BatchSample::Sequence& sequence : sample.sequences) {
    sequences.push_back({sequence.request, sequence.pages,
                         sequence.shared_pages, sequence.tokens});
  }
  return {{"step", sample.step},
          {"time_ms", Ms(batch.start)},
          {"pages_free", sample.pages_free},
          {"pages_in_use", sample.pages_in_use},
          {"pages_cached", sample.pages_cached},
          {"pages_shared", sample.pages_shared},
          {"sequences", std::move(sequences)}};
}

// Of those whose sequences are known: steps at even distances, the last and the
// fullest one.
Json Maps(std::span<const RunBatch> batches) {
  std::vector<const RunBatch*> known;
  for (const RunBatch& batch : batches) {
    if (!batch.sample.sequences.empty()) known.push_back(&batch);
  }
  if (known.empty()) return Json::array();
  std::vector<const RunBatch*> chosen;
  const size_t distance = known.size() / (kMaxMaps - 2) + 1;
  for (size_t i = 0; i < known.size(); i += distance) {
    chosen.push_back(known[i]);
  }
  chosen.push_back(known.back());
  chosen.push_back(*std::ranges::max_element(
      known, {}, [](const RunBatch* b) { return b->sample.pages_in_use; }));
  std::ranges::sort(chosen);  // They stand in a row.
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  Json maps = Json::array();
  for (const RunBatch* const batch : chosen) maps.push_back(MapOf(*batch));
  return maps;
}

// Null where there are none.
Json Batches(std::span<const RunBatch> batches) {
  if (batches.empty()) return nullptr;
  Json columns = Json::object();
  const size_t steps_a_row =
      (batches.size() + kMaxBatchRows - 1) / kMaxBatchRows;
  for (std::span<const RunBatch> rest = batches; !rest.empty();) {
    const size_t count = std::min(steps_a_row, rest.size());
    AddBatchRow(rest.first(count), columns);
    rest = rest.subspan(count);
  }
  int64_t dropped = 0;
  for (const RunBatch& batch : batches) dropped += batch.sample.dropped;
  const BatchSample& any = batches.front().sample;
  return {{"pool",
           {{"page_size", any.page_size},
            {"page_bytes", any.page_bytes},
            {"bytes_per_token", any.bytes_per_token},
            {"pages_total", any.pages_total}}},
          {"columns", std::move(columns)},
          {"dropped", dropped},
          {"maps", Maps(batches)}};
}

Json ClientOf(const ClientLag& lag) {
  const std::string note = BottleneckNote(lag);
  return {{"send_lag_ms", SummaryOf(lag.send)},
          {"timer_lag_ms", SummaryOf(lag.timer)},
          {"cpu_share", Rounded(lag.busy_cores)},
          {"is_bottleneck", !note.empty()},
          {"note", note}};
}

}  // namespace

Json RunDocument(const RunFacts& facts, const RunResult& result,
                 const ClientLag& lag) {
  const LoadMetrics metrics = Measure(result.records, facts.limits);
  const Json limits = LimitsOf(facts.limits);
  return {{"name", facts.name},
          {"target", facts.target},
          {"server", facts.info.server},
          {"model", facts.info.model},
          {"started", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", facts.started,
                                       absl::UTCTimeZone())},
          {"seed", facts.seed},
          {"command", facts.command},
          {"load", facts.load},
          {"complete", result.broke_off.ok()},
          {"error", std::string(result.broke_off.message())},
          {"client", ClientOf(lag)},
          {"distributions", Distributions(metrics)},
          {"totals", Totals(metrics, !limits.is_null())},
          {"limits", limits},
          {"offered_rate", facts.offered_rate.has_value()
                               ? Json(Rounded(*facts.offered_rate))
                               : Json()},
          {"statuses", metrics.statuses},
          {"requests", RequestColumns(result.records)},
          {"batches", Batches(result.batches)}};
}

Json Document(std::span<const Json> runs) {
  return {{"format", kFormat},
          {"runs", std::vector<Json>(runs.begin(), runs.end())}};
}

absl::StatusOr<std::vector<Json>> ParseDocument(std::string_view text,
                                                const std::string& path) {
  const auto is_run = [](const Json& run) {
    return run.is_object() && run.contains("name") &&
           run.contains("distributions") && run.contains("totals");
  };
  const Json document = ParseJson(text, path).value_or(Json());
  if (document.is_object() && document.contains("format") &&
      document["format"] == kFormat && document.contains("runs") &&
      document["runs"].is_array() &&
      std::ranges::all_of(document["runs"], is_run)) {
    return document["runs"].get<std::vector<Json>>();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", path,
      "' does not hold the results of a load test of this version; "
      "it must be a file that `folio-load --json` has written (\"format\": \"",
      kFormat, "\")"));
}

}  // namespace folio
