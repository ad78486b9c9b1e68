// The results of a run as one JSON document: what `folio-load --json` writes,
// and what the report shows.

#ifndef BENCH_LOAD_DOCUMENT_H_
#define BENCH_LOAD_DOCUMENT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/load/client_meter.h"
#include "bench/load/metrics.h"
#include "bench/load/run.h"
#include "bench/load/target.h"

namespace folio {

// What a run was, besides its results.
struct RunFacts {
  std::string name;
  std::string target;  // As --target says it.
  TargetInfo info;
  uint64_t seed = 0;
  std::string command;
  std::string load;  // For people.
  LatencyLimits limits;
  // Requests a second of an open loop, where it has such a number.
  std::optional<double> offered_rate;
  absl::Time started;
};

// One run. Keys that end in _ms are milliseconds, with at most 3 decimals:
// arrival_ms and sent_ms after the start of the run, the other times of a
// request after its scheduled arrival. Its gaps, those of its first sample
// first, are in units of 0.1 ms. Of the batches there are at most 4000 rows: if
// there were more, neighbours are merged.
nlohmann::json RunDocument(const RunFacts& facts, const RunResult& result,
                           const ClientLag& lag);

// A document of several runs: {"format": ..., "runs": [...]}.
nlohmann::json Document(std::span<const nlohmann::json> runs);

// The runs of a document's text. INVALID_ARGUMENT, naming `path`, for what is
// not one.
absl::StatusOr<std::vector<nlohmann::json>> ParseDocument(
    std::string_view text, const std::string& path);

}  // namespace folio

#endif  // BENCH_LOAD_DOCUMENT_H_
