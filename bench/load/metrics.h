// What a load test measures, and how its numbers are defined.

#ifndef BENCH_LOAD_METRICS_H_
#define BENCH_LOAD_METRICS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace folio {

// What has become of one request.
struct RequestRecord {
  absl::Duration arrival;  // As scheduled, after the start of the load.
  // When each generated token came, counted from the scheduled arrival: a
  // server that is late can't hide it.
  std::vector<absl::Duration> token_times;
  // OK when it was served to its end. Else why it was refused, or ended early;
  // the tokens that came before that are in token_times.
  absl::Status status;
};

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

struct LoadMetrics {
  // Time to first token: token_times[0]; of requests that got one.
  DurationSummary ttft;
  // Inter-token latency: every gap token_times[i] - token_times[i - 1] of every
  // request.
  DurationSummary itl;
  int64_t requests = 0;
  int64_t failed = 0;  // Of them, those whose status is not OK.
  int64_t output_tokens = 0;
  // From the first scheduled arrival to the last token.
  absl::Duration duration;
  double output_tokens_per_second = 0;  // output_tokens / duration; 0 if none.
};

// The nearest-rank percentile: the least of `sorted` that at least `percent` %
// of them do not exceed, which is always one of them; the median of an even
// number is the lower of the middle two. Zero if there is none.
// REQUIRES: `sorted` ascends; 0 <= percent <= 100.
absl::Duration Percentile(std::span<const absl::Duration> sorted,
                          double percent);

DurationSummary Summarise(std::vector<absl::Duration> values);

LoadMetrics Measure(std::span<const RequestRecord> records);

// All gaps between the tokens of one request.
std::vector<absl::Duration> Gaps(const RequestRecord& record);

// OK when every request was served to its end; else the first other status,
// with the number of the request in front.
absl::Status FirstFailure(std::span<const RequestRecord> records);

}  // namespace folio

#endif  // BENCH_LOAD_METRICS_H_
