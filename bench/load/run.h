// Puts a load on a target, each request at its time.

#ifndef BENCH_LOAD_RUN_H_
#define BENCH_LOAD_RUN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bench/load/batch_sample.h"
#include "bench/load/load.h"
#include "bench/load/metrics.h"
#include "bench/load/run_clock.h"
#include "bench/load/target.h"

namespace folio {

struct RunProgress {
  int64_t total = 0;
  int64_t sent = 0;
  int64_t live = 0;        // On their way.
  int64_t ended = 0;       // Those that were given up without being sent, too.
  int64_t not_served = 0;  // Of those that ended.
  int64_t tokens = 0;
  absl::Duration elapsed;
};

struct RunOptions {
  // 0: an open loop; each request goes at its time, however many are on their
  // way. Else a closed one: requests go in the order of their times, which have
  // no other effect, each as soon as fewer than this are on their way, and that
  // is its scheduled arrival.
  int32_t concurrency = 0;
  // Requests are called this and a number. No two runs on one server at a time
  // may share names.
  std::string name_prefix = "load-";
  // Ids of drawn prompts are below this.
  int32_t vocab_size = 1;
  // Within 200 ms after it has become true, the run breaks off.
  const std::atomic<bool>* interrupted = nullptr;
  // Called now and then, on the run's thread.
  std::function<void(const RunProgress&)> on_progress = nullptr;
};

// A batch, and when it began by the run's clock. Of a long run only some have
// their sequences: of 128 steps at most, the fullest and the last among them.
struct RunBatch {
  absl::Duration start;  // After the run's; negative: before.
  BatchSample sample;
};

struct RunResult {
  absl::Time start;
  std::vector<RequestRecord> records;  // In the order of the load.
  std::vector<RunBatch> batches;  // In order; none if the target can't tell.
  // How late requests were sent, each after its scheduled arrival (of a closed
  // loop: after its turn came).
  std::vector<absl::Duration> send_lags;
  // Why not all requests were sent; the records are of what came before. OK:
  // all of them were, and have ended.
  absl::Status broke_off;
};

// Returns when every request has ended. A request that fails leaves the others
// alone, unless the target does not answer any more, which ends the run (after
// an UNAVAILABLE it is asked, and sends wait for that); the
// requests that were not sent then have ABORTED.
//
// A turn of a conversation is due its think time after the end of the one
// before, and is not sent (ABORTED) when that one was not served. Its prompt is
// that of the one before, what was generated (where the target tells no ids, as
// many drawn ones), and its own.
//
// O(log N) for each request, O(1) for each token.
RunResult Run(std::span<const LoadRequest> load, Target& target,
              RunClock& clock, const RunOptions& options);

}  // namespace folio

#endif  // BENCH_LOAD_RUN_H_
