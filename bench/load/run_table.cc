#include "bench/load/run_table.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace folio {
namespace {

using Json = nlohmann::json;

// As many digits as say something.
std::string Number(double value) {
  return value == 0 || value >= 1000 ? absl::StrFormat("%.0f", value)
         : value >= 100              ? absl::StrFormat("%.1f", value)
         : value >= 1                ? absl::StrFormat("%.2f", value)
                                     : absl::StrFormat("%.3f", value);
}

std::string Text(const Json& value) { return value.get<std::string>(); }

// That of the row with the key; null if there is none.
Json Find(const Json& rows, std::string_view key, const char* field) {
  for (const Json& row : rows) {
    if (row["key"].get<std::string>() == key) return row[field];
  }
  return nullptr;
}

std::string Cell(const Json& value) {
  return value.is_null() ? "-" : Number(value.get<double>());
}

std::string Count(const Json& value) {
  return value.is_null() ? "-" : absl::StrFormat("%.0f", value.get<double>());
}

void AppendDistributions(const Json& run, std::string& out) {
  absl::StrAppendFormat(&out, "%-24s%8s%9s%9s%9s%9s%9s\n", "latency, ms",
                        "mean", "p50", "p90", "p95", "p99", "max");
  for (const Json& row : run["distributions"]) {
    absl::StrAppendFormat(&out, "%-24s%8s%9s%9s%9s%9s%9s\n", Text(row["name"]),
                          Cell(row["mean"]), Cell(row["p50"]), Cell(row["p90"]),
                          Cell(row["p95"]), Cell(row["p99"]), Cell(row["max"]));
  }
}

void AppendTotals(const Json& run, std::string& out) {
  for (const Json& row : run["totals"]) {
    const std::string unit = Text(row["unit"]);
    const Json& value = row["value"];
    absl::StrAppendFormat(&out, "%-24s%8s %s\n", Text(row["name"]),
                          unit.empty() ? Count(value) : Cell(value), unit);
  }
}

// What is worth a warning.
void AppendNotes(const Json& run, std::string& out) {
  for (const auto& [status, count] : run["statuses"].items()) {
    if (status == "OK") continue;
    const Json& statuses = run["requests"]["status"];
    const auto first = std::ranges::find(statuses, Json(status));
    const Json& message = run["requests"]["message"][first - statuses.begin()];
    absl::StrAppend(&out, count.get<int64_t>(), " ended with ", status,
                    ", such as: ", Text(message), "\n");
  }
  if (!run["complete"].get<bool>()) {
    absl::StrAppend(&out, "the run broke off: ", Text(run["error"]), "\n");
  }
  const std::string note = Text(run["client"]["note"]);
  if (!note.empty()) absl::StrAppend(&out, "warning: ", note, "\n");
  const Json& batches = run["batches"];
  if (!batches.is_null() && batches["dropped"].get<int64_t>() > 0) {
    absl::StrAppend(&out, "warning: ", batches["dropped"].get<int64_t>(),
                    " batch reports came too fast and are missing\n");
  }
}

}  // namespace

std::string RunTable(const Json& run) {
  std::string out =
      absl::StrCat("== ", Text(run["name"]), "\n", Text(run["load"]), "\non ",
                   Text(run["target"]));
  for (const char* const key : {"server", "model"}) {
    if (!Text(run[key]).empty()) absl::StrAppend(&out, ", ", Text(run[key]));
  }
  out += "\n\n";
  AppendDistributions(run, out);
  out += "\n";
  AppendTotals(run, out);
  AppendNotes(run, out);
  return out;
}

std::string SummaryTable(std::span<const Json> runs) {
  size_t width = 4;
  for (const Json& run : runs)
    width = std::max(width, Text(run["name"]).size());
  std::string out = absl::StrFormat(
      "%-*s%8s%9s%10s%10s%9s%9s%10s%10s\n", width, "run", "served", "failed",
      "output/s", "TTFT p50", "p99", "ITL p50", "p99, ms", "goodput/s");
  for (const Json& run : runs) {
    const Json& rows = run["distributions"];
    const Json& totals = run["totals"];
    absl::StrAppendFormat(
        &out, "%-*s%8s%9s%10s%10s%9s%9s%10s%10s\n", width, Text(run["name"]),
        Count(Find(totals, "served", "value")),
        Count(Find(totals, "failed", "value")),
        Cell(Find(totals, "output_tokens_per_second", "value")),
        Cell(Find(rows, "ttft", "p50")), Cell(Find(rows, "ttft", "p99")),
        Cell(Find(rows, "itl", "p50")), Cell(Find(rows, "itl", "p99")),
        Cell(Find(totals, "goodput", "value")));
  }
  return out;
}

}  // namespace folio
