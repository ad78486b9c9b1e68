#include "bench/load/client_meter.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace folio {
namespace {

constexpr absl::Duration kTimerPeriod = absl::Milliseconds(10);
constexpr absl::Duration kMaxLag = absl::Milliseconds(20);

// Of all threads of this process.
absl::Duration CpuTime() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

}  // namespace

ClientMeter::ClientMeter()
    : start_(absl::Now()),
      cpu_at_start_(CpuTime()),
      thread_([this] { Run(); }) {}

ClientMeter::~ClientMeter() {
  is_stopped_ = true;
  if (thread_.joinable()) thread_.join();
}

void ClientMeter::Run() {
  while (!is_stopped_) {
    const absl::Time due = absl::Now() + kTimerPeriod;
    absl::SleepFor(kTimerPeriod);
    timer_lags_.push_back(absl::Now() - due);
  }
}

ClientLag ClientMeter::Stop(std::vector<absl::Duration> send_lags) {
  is_stopped_ = true;
  thread_.join();
  const absl::Duration wall = absl::Now() - start_;
  return {.timer = Summarise(std::move(timer_lags_)),
          .send = Summarise(std::move(send_lags)),
          .busy_cores = absl::FDivDuration(CpuTime() - cpu_at_start_, wall)};
}

std::string BottleneckNote(const ClientLag& lag) {
  const absl::Duration latest = std::max(lag.timer.p99, lag.send.p99);
  if (latest <= kMaxLag) return "";
  return absl::StrCat(
      "the client lagged behind: 1% of its ",
      lag.send.p99 > lag.timer.p99 ? "requests were sent" : "timers fired",
      " more than ",
      absl::FormatDuration(absl::Trunc(latest, absl::Milliseconds(1))),
      " late, and latencies may be too long by that; run it with a smaller "
      "load, "
      "or on another machine");
}

}  // namespace folio
