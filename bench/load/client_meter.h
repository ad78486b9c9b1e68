// How much of what a load test measures is the client's own doing.

#ifndef BENCH_LOAD_CLIENT_METER_H_
#define BENCH_LOAD_CLIENT_METER_H_

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "bench/load/metrics.h"

namespace folio {

struct ClientLag {
  // How much too late a thread woke that did nothing but sleep: what the
  // machine adds to whatever happens on it.
  DurationSummary timer;
  // How late requests were sent.
  DurationSummary send;
  // Cores that this process kept busy, in the mean.
  double busy_cores = 0;
};

// Measures while it lives; one thread, which sleeps.
class ClientMeter {
 public:
  ClientMeter();
  ~ClientMeter();

  ClientLag Stop(std::vector<absl::Duration> send_lags);

 private:
  void Run();

  const absl::Time start_;
  const absl::Duration cpu_at_start_;
  std::atomic<bool> is_stopped_ = false;
  std::vector<absl::Duration> timer_lags_;
  std::thread thread_;
};

// Empty, or why the client may have been the bottleneck: 1% of its timers or of
// its sends were later than 20 ms, and latencies may be too long by that.
std::string BottleneckNote(const ClientLag& lag);

}  // namespace folio

#endif  // BENCH_LOAD_CLIENT_METER_H_
