// What a load test measures, and how its numbers are defined.

#ifndef BENCH_LOAD_METRICS_H_
#define BENCH_LOAD_METRICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace folio {

// What has become of one request. All its times but `arrival` and `sent` count
// from its scheduled arrival: a server that is late can't hide it.
struct RequestRecord {
  std::string name;
  std::string tenant;
  absl::Duration arrival;              // As scheduled, after the start.
  std::optional<absl::Duration> sent;  // After the start; none: it never was.
  // When each generated token came, of each sample that got one.
  std::vector<std::vector<absl::Duration>> samples;
  std::optional<absl::Duration> end;  // When its status came.
  // OK when it was served to its end. Else why it was refused, or ended early;
  // the tokens that came before that are in `samples`.
  absl::Status status;
  // Whether that status was asked for: the load cancelled it, or gave it a
  // deadline that has passed; or did so with the turn before it.
  bool end_was_asked_for = false;

  int32_t n = 1;              // Samples that were asked for.
  bool reads_slowly = false;  // Its client waited before it read each message.

  int32_t prompt_tokens = 0;
  // Of those, whose K/V the server had already, where it tells.
  std::optional<int32_t> cached_tokens;
  // Where the server counts the tokens itself.
  std::optional<int32_t> told_output_tokens;
  std::optional<absl::Duration> queue_duration;  // Where it tells that.
};

// Of all samples: as the server says, or else as they came.
int64_t OutputTokens(const RequestRecord& record);

// TTFT, time to first token: when the first token of any sample came.
std::optional<absl::Duration> TimeToFirstToken(const RequestRecord& record);

// ITL, inter-token latency: every gap between two tokens of one sample.
std::vector<absl::Duration> Gaps(const RequestRecord& record);

// TPOT, time per output token: (E2E - TTFT) / (output - 1), with the output of
// the longest sample as it came. None for requests that were not served to
// their end, and with fewer than two tokens.
std::optional<absl::Duration> TimePerOutputToken(const RequestRecord& record);

// E2E, end to end: when the request's end came. None where it was not served to
// it.
std::optional<absl::Duration> EndToEnd(const RequestRecord& record);

// Of the empty set, all is zero.
struct DurationSummary {
  int64_t count = 0;
  absl::Duration mean;
  absl::Duration p50;
  absl::Duration p90;
  absl::Duration p95;
  absl::Duration p99;
  absl::Duration max;
};

// The nearest-rank percentile: the least of `sorted` that at least `percent` %
// of them do not exceed, which is always one of them; the median of an even
// number is the lower of the middle two. Zero if there is none.
// REQUIRES: `sorted` ascends; 0 <= percent <= 100.
absl::Duration Percentile(std::span<const absl::Duration> sorted,
                          double percent);

DurationSummary Summarise(std::vector<absl::Duration> values);

// What a request has to keep to be a good one. Of its gaps, 99% have to (with
// fewer than 100, all).
struct LatencyLimits {
  std::optional<absl::Duration> ttft;
  std::optional<absl::Duration> itl;
  std::optional<absl::Duration> tpot;
  std::optional<absl::Duration> e2e;
};

// Whether it was served to its end, and within the limits.
bool IsGood(const RequestRecord& record, const LatencyLimits& limits);

struct LoadMetrics {
  DurationSummary ttft;   // Of requests that got a token.
  DurationSummary itl;    // Of all gaps of all requests.
  DurationSummary tpot;   // Of requests served to their end.
  DurationSummary e2e;    // Of those, too.
  DurationSummary queue;  // Of requests whose server told.

  int64_t requests = 0;
  int64_t served = 0;  // Of them, to their end.
  // Of the others: what was never sent (a run broke off, or the turn before was
  // not served); what ended by a cancel or a deadline of the load; the rest.
  int64_t not_sent = 0;
  int64_t ended_as_asked = 0;
  int64_t failed = 0;
  int64_t good = 0;                         // Served, within the limits.
  std::map<std::string, int64_t> statuses;  // Requests by how they ended.

  int64_t input_tokens = 0;         // Prompts of requests that got a token.
  int64_t cached_input_tokens = 0;  // Of those, where servers tell.
  int64_t output_tokens = 0;
  // From the first scheduled arrival to the last token.
  absl::Duration duration;
  // Divided by `duration`; 0 if that is.
  double output_tokens_per_second = 0;
  double input_tokens_per_second = 0;
  double total_tokens_per_second = 0;
  double requests_per_second = 0;  // Served ones.
  double goodput = 0;              // Good ones a second.
};

// O(T log T) for T tokens.
LoadMetrics Measure(std::span<const RequestRecord> records,
                    const LatencyLimits& limits = {});

// OK when every request was served to its end; else the first other status,
// with the number of the request in front.
absl::Status FirstFailure(std::span<const RequestRecord> records);

}  // namespace folio

#endif  // BENCH_LOAD_METRICS_H_
