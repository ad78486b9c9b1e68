// What Prometheus is told.

#ifndef RUNTIME_SERVER_METRICS_H_
#define RUNTIME_SERVER_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "runtime/base/element_type.h"
#include "runtime/base/types.h"
#include "runtime/engine/step_output.h"

namespace prometheus {
class Registry;
}  // namespace prometheus

namespace folio {

struct CacheConfig {
  int32_t page_size = 0;  // Token slots.
  int32_t num_pages = 0;
  int64_t pool_bytes = 0;
  ElementType kv_type = ElementType::kF32;
  bool prefix_cache = false;
};

// The metrics of one engine, all labelled with model_name. Names, labels and
// meanings are those of vLLM with the prefix "folio:", so that its dashboards
// work after a change of prefix, and bucket bounds are its own and finer ones
// (https://docs.vllm.ai/en/stable/usage/metrics/). Names are as exposed: vLLM's
// documentation leaves out the "_total" that its client library appends to
// counters. As there, each sample of a request counts as one that runs.
//
//   gauges      num_requests_running, num_requests_waiting,
//               kv_cache_usage_perc (pages in use of all, 0 to 1),
//               cache_config_info (1; its labels tell)
//   counters    prefix_cache_queries_total, prefix_cache_hits_total (tokens),
//               prompt_tokens_total (when a prompt is complete, all of it),
//               generation_tokens_total, num_preemptions_total,
//               request_success_total{finished_reason}
//   histograms  time_to_first_token_seconds, inter_token_latency_seconds,
//               e2e_request_latency_seconds, request_queue_time_seconds,
//               request_prefill_time_seconds, request_decode_time_seconds,
//               iteration_tokens_total (computed in a step)
//
// Folio's own:
//
//   gauges      kv_pages{state="free|in_use|cached"}, and of the last step at
//               its fullest: kv_tokens_held, kv_waste_bytes (reserved, but not
//               held), kv_shared_bytes_saved; 0 when no page is in use
//   histograms  step_seconds{part="plan|forward|sample|commit"}
//
// Every request is counted once in request_success_total, when it ends,
// whatever its end: stop, length, abort, deadline, shutdown or error; where
// samples end differently, as the last one of them. Queue and end-to-end times
// are of every request, prefill and decode times of those that got a token.
//
// A gap between tokens is from one output that has tokens of a sample to the
// next that has; several tokens in one output are one observation.
//
// Prometheus may scrape at any time; the rest belongs to one thread. Observe is
// O(events), and takes an uncontended lock for each observation.
class Metrics {
 public:
  Metrics(const std::string& model_name, const CacheConfig& cache);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Takes in what the engine handed out. Every output has to be observed, in
  // order.
  void Observe(const StepOutput& output);

  // Where they can be collected. It may outlive this object.
  std::shared_ptr<prometheus::Registry> registry() const { return registry_; }

  // Live requests that have got a token.
  size_t num_timed_requests() const { return last_token_times_.size(); }

 private:
  struct Instruments;

  void ObserveStep(const BatchReport& report);
  void ObserveEnd(const TokenEvent& terminal);
  void ObserveGap(const TokenEvent& event, absl::Time now);
  void SetGauges(const StepOutput& output);

  const std::shared_ptr<prometheus::Registry> registry_;
  const std::unique_ptr<const Instruments> instruments_;  // In the registry.
  // When a sample's last tokens were handed out. [sample_index]
  absl::flat_hash_map<RequestId, std::vector<absl::Time>> last_token_times_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_METRICS_H_
