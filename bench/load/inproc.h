// Puts a load on an engine in this process, each request at its time.

#ifndef BENCH_LOAD_INPROC_H_
#define BENCH_LOAD_INPROC_H_

#include <functional>
#include <span>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/load/load.h"
#include "bench/load/metrics.h"
#include "runtime/base/clock.h"
#include "runtime/engine/engine.h"
#include "scheduler/request.h"

namespace folio {

struct TimedRequest {
  absl::Duration arrival;  // After the start.
  Request request;         // REQUIRES: n == 1.
};

std::vector<TimedRequest> ToTimedRequests(std::span<const LoadRequest> load,
                                          int32_t vocab_size);

struct InprocOptions {
  // How to wait until a request is due, when there is nothing to compute.
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
  // Called after each step that computed something, with what it led to. Its
  // time delays what comes after it.
  std::function<void(const StepOutput&)> after_step = nullptr;
};

// Drives the engine by hand on this thread, until every request has ended. Open
// loop: requests that become due during a step are submitted before the next
// one, however many run. A token's time is that of the end of its step.
//
// `clock` is the engine's. The engine is left idle. Records are in the order of
// `requests`, which need not be that of their arrival.
// REQUIRES: nothing is live in the engine, and nobody else drives it.
std::vector<RequestRecord> RunInProcess(std::vector<TimedRequest> requests,
                                        Engine& engine, const Clock& clock,
                                        const InprocOptions& options = {});

}  // namespace folio

#endif  // BENCH_LOAD_INPROC_H_
