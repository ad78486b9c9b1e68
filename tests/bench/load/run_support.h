// What tests of runs share.

#ifndef TESTS_BENCH_LOAD_RUN_SUPPORT_H_
#define TESTS_BENCH_LOAD_RUN_SUPPORT_H_

#include <vector>

#include "absl/time/time.h"
#include "bench/load/load.h"
#include "bench/load/metrics.h"
#include "bench/load/run.h"
#include "tests/bench/load/scripted_target.h"
#include "tests/bench/load/virtual_run_clock.h"

namespace folio {

inline absl::Duration Ms(double ms) { return absl::Milliseconds(ms); }

// When virtual runs start.
inline absl::Time RunStart() { return absl::UnixEpoch() + absl::Hours(1); }

// When a request was due, and when it was sent: after the start.
inline std::vector<absl::Duration> ArrivalsOf(const RunResult& result) {
  std::vector<absl::Duration> arrivals;
  for (const RequestRecord& record : result.records) {
    arrivals.push_back(record.arrival);
  }
  return arrivals;
}

inline std::vector<absl::Duration> SendTimes(const ScriptedTarget& target) {
  std::vector<absl::Duration> times;
  for (const ScriptedTarget::Seen& seen : target.seen()) {
    times.push_back(seen.sent - RunStart());
  }
  return times;
}

}  // namespace folio

#endif  // TESTS_BENCH_LOAD_RUN_SUPPORT_H_
