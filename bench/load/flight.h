// One request of a run on its way.

#ifndef BENCH_LOAD_FLIGHT_H_
#define BENCH_LOAD_FLIGHT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "bench/load/metrics.h"
#include "bench/load/run_clock.h"
#include "bench/load/target.h"
#include "runtime/base/types.h"

namespace folio {

// What has ended and was not looked at yet. Thread-safe.
class EndedRequests {
 public:
  explicit EndedRequests(RunClock* clock) : clock_(clock) {}

  void Add(size_t index) {
    {
      std::lock_guard lock(mutex_);
      indices_.push_back(index);
    }
    clock_->Wake();
  }

  std::vector<size_t> Take() {
    std::lock_guard lock(mutex_);
    return std::exchange(indices_, {});
  }

 private:
  RunClock* const clock_;
  std::mutex mutex_;
  std::vector<size_t> indices_;
};

// Writes the record of its request.
class Flight final : public TargetListener {
 public:
  // `clock`, `record`, `num_tokens` and `ended` must outlive it.
  Flight(size_t index, absl::Time scheduled, bool keeps_output, RunClock* clock,
         RequestRecord* record, std::atomic<int64_t>* num_tokens,
         EndedRequests* ended)
      : index_(index),
        scheduled_(scheduled),
        keeps_output_(keeps_output),
        clock_(clock),
        record_(record),
        num_tokens_(num_tokens),
        ended_(ended) {}

  void OnOutput(const Output& output) override {
    const absl::Duration time = clock_->Now() - scheduled_;
    const auto sample = static_cast<size_t>(output.sample);
    if (record_->samples.size() <= sample) record_->samples.resize(sample + 1);
    std::vector<absl::Duration>& times = record_->samples[sample];
    times.insert(times.end(), output.num_tokens, time);
    *num_tokens_ += output.num_tokens;
    if (!keeps_output_ || sample != 0) return;
    tokens.insert(tokens.end(), output.tokens.begin(), output.tokens.end());
    text += output.text;
  }

  void OnEnd(TargetEnd end) override {
    record_->end = clock_->Now() - scheduled_;
    record_->status = std::move(end.status);
    if (end.prompt_tokens.has_value()) {
      record_->prompt_tokens = *end.prompt_tokens;
    }
    record_->told_output_tokens = end.output_tokens;
    record_->cached_tokens = end.cached_tokens;
    record_->queue_duration = end.queue_duration;
    ended_->Add(index_);
  }

  // What the next turn of its conversation sends again.
  Prompt prompt;
  std::vector<TokenId> tokens;
  std::string text;

  std::unique_ptr<TargetCall> call;

 private:
  const size_t index_;
  const absl::Time scheduled_;
  const bool keeps_output_;
  RunClock* const clock_;
  RequestRecord* const record_;
  std::atomic<int64_t>* const num_tokens_;
  EndedRequests* const ended_;
};

}  // namespace folio

#endif  // BENCH_LOAD_FLIGHT_H_
