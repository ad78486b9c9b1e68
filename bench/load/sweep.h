// Runs of one load at several rates, and what they have to keep.

#ifndef BENCH_LOAD_SWEEP_H_
#define BENCH_LOAD_SWEEP_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/metrics.h"

namespace folio {

// Requests a second of an open loop.
inline constexpr double kMinRate = 1e-3;
inline constexpr double kMaxRate = 1e5;

struct Sweep {
  enum class Variable { kRate, kConcurrency };
  Variable variable = Variable::kRate;
  std::vector<double> values;  // Ascending; whole for a concurrency.
};

// "rate=FROM:TO:STEP" or "concurrency=FROM:TO:STEP": FROM, FROM + STEP, ... up
// to TO, at most 100 values, rates from kMinRate to kMaxRate. INVALID_ARGUMENT
// says what is wrong.
absl::StatusOr<Sweep> ParseSweep(std::string_view text);

// "ttft:200,itl:50": milliseconds, of ttft, itl, tpot and e2e. INVALID_ARGUMENT
// says what is wrong.
absl::StatusOr<LatencyLimits> ParseLimits(std::string_view text);

// Whether at least `share` of the requests were good.
bool MeetsLimits(const LoadMetrics& metrics, double share);

}  // namespace folio

#endif  // BENCH_LOAD_SWEEP_H_
