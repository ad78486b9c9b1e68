#include "bench/load/inproc.h"

#include <glog/logging.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "runtime/server/finish_status.h"

namespace folio {
namespace {

class Runner {
 public:
  Runner(std::vector<TimedRequest> requests, Engine& engine, const Clock& clock,
         const InprocOptions& options)
      : requests_(std::move(requests)),
        engine_(engine),
        clock_(clock),
        options_(options),
        order_(requests_.size()),
        records_(requests_.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::ranges::stable_sort(order_, {},
                             [this](size_t i) { return requests_[i].arrival; });
  }

  std::vector<RequestRecord> Run() {
    start_ = clock_.Now();
    StepOutput output;
    while (next_ < order_.size() || !live_.empty()) {
      SubmitDue();
      if (live_.empty()) {
        SleepUntilDue();
        continue;
      }
      engine_.Step(output);
      Take(output.events);
      if (output.stepped && options_.after_step) options_.after_step(output);
    }
    return std::move(records_);
  }

 private:
  void SubmitDue() {
    const absl::Duration now = clock_.Now() - start_;
    for (; next_ < order_.size(); ++next_) {
      const size_t index = order_[next_];
      TimedRequest& timed = requests_[index];
      if (timed.arrival > now) return;
      CHECK_EQ(timed.request.n, 1);
      RequestRecord& record = records_[index];
      record.arrival = timed.arrival;
      record.sent = now;
      record.samples.resize(1);
      record.prompt_tokens = static_cast<int32_t>(timed.request.prompt.size());
      record.status = engine_.Prepare(timed.request);
      if (!record.status.ok()) continue;
      const RequestId id = timed.request.id;
      record.status = engine_.Submit(std::move(timed.request));
      if (record.status.ok()) live_.emplace(id, index);
    }
  }

  void SleepUntilDue() {
    if (next_ == order_.size()) return;
    const absl::Duration due = requests_[order_[next_]].arrival;
    const absl::Duration left = due - (clock_.Now() - start_);
    if (left > absl::ZeroDuration()) options_.sleep(left);
  }

  void Take(const TokenEvents& events) {
    const absl::Duration now = clock_.Now() - start_;
    for (const TokenEvent& event : events) {
      const auto live = live_.find(event.request_id);
      CHECK(live != live_.end()) << "somebody else's request";
      RequestRecord& record = records_[live->second];
      std::vector<absl::Duration>& times = record.samples[0];
      times.insert(times.end(), event.sampled.tokens.size(),
                   now - record.arrival);
      if (!event.terminal) continue;
      record.end = now - record.arrival;
      record.status = StatusOfFinish(event.finish_reason);
      live_.erase(live);
    }
  }

  std::vector<TimedRequest> requests_;
  Engine& engine_;
  const Clock& clock_;
  const InprocOptions& options_;

  std::vector<size_t> order_;  // Of `requests_`, by arrival.
  size_t next_ = 0;            // In `order_`; the first that was not due yet.
  absl::Time start_;
  absl::flat_hash_map<RequestId, size_t> live_;  // To the index.
  std::vector<RequestRecord> records_;
};

}  // namespace

std::vector<TimedRequest> ToTimedRequests(std::span<const LoadRequest> load,
                                          int32_t vocab_size) {
  std::vector<TimedRequest> requests;
  requests.reserve(load.size());
  for (const LoadRequest& request : load) {
    requests.push_back({.arrival = request.arrival,
                        .request = ToRequest(request, vocab_size)});
  }
  return requests;
}

std::vector<RequestRecord> RunInProcess(std::vector<TimedRequest> requests,
                                        Engine& engine, const Clock& clock,
                                        const InprocOptions& options) {
  return Runner(std::move(requests), engine, clock, options).Run();
}

}  // namespace folio
