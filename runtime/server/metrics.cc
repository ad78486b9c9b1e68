#include "runtime/server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/server/finish_reason_name.h"

namespace folio {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using Bounds = Histogram::BucketBoundaries;

// The bounds of vLLM, and finer ones below its first, for small models.
const Bounds& FirstTokenBounds() {
  static const auto* const bounds = new Bounds{
      0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25,  0.5,   0.75,
      1,     2.5,   5,    7.5,  10,   20,   40,   80,  160.0, 640.0, 2560.0};
  return *bounds;
}

const Bounds& GapBounds() {
  static const auto* const bounds = new Bounds{
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
      0.4,   0.5,    0.75,  1,    2.5,   5,    7.5,   10,  20,   40,  80};
  return *bounds;
}

const Bounds& RequestBounds() {
  static const auto* const bounds = new Bounds{
      0.001, 0.005, 0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1,   1.5, 2,   2.5,  5,
      10,    15,    20,   30,   40,  50,  60,  120, 240, 480, 960, 1920, 7680};
  return *bounds;
}

const Bounds& TokenBounds() {
  static const auto* const bounds = new Bounds{
      1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  return *bounds;
}

const Bounds& StepBounds() {
  static const auto* const bounds = new Bounds{
      1e-5, 3e-5, 1e-4, 3e-4, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10};
  return *bounds;
}

// Makes metrics of one registry. It merges families of one name.
class Maker {
 public:
  Maker(prometheus::Registry* registry, const std::string& model_name)
      : registry_(registry), labels_({{"model_name", model_name}}) {}

  Gauge* MakeGauge(const std::string& name, const std::string& help,
                   const prometheus::Labels& more = {}) {
    return &Family(prometheus::BuildGauge(), name, help).Add(more);
  }
  Counter* MakeCounter(const std::string& name, const std::string& help,
                       const prometheus::Labels& more = {}) {
    return &Family(prometheus::BuildCounter(), name, help).Add(more);
  }
  Histogram* MakeHistogram(const std::string& name, const std::string& help,
                           const Bounds& bounds,
                           const prometheus::Labels& more = {}) {
    return &Family(prometheus::BuildHistogram(), name, help).Add(more, bounds);
  }

 private:
  template <typename T>
  prometheus::Family<T>& Family(prometheus::detail::Builder<T> builder,
                                const std::string& name,
                                const std::string& help) {
    return builder.Name("folio:" + name)
        .Help(help)
        .Labels(labels_)
        .Register(*registry_);
  }

  prometheus::Registry* const registry_;
  const prometheus::Labels labels_;
};

Gauge* MakePages(Maker& maker, const std::string& state) {
  return maker.MakeGauge("kv_pages", "Pages of the KV pool by state.",
                         {{"state", state}});
}

Histogram* MakePart(Maker& maker, const std::string& part) {
  return maker.MakeHistogram("step_seconds", "Time of a step's parts.",
                             StepBounds(), {{"part", part}});
}

// The labels' names are known to dashboards and to routers, as are its words
// for true and false.
void MakeCacheInfo(Maker& maker, const CacheConfig& cache) {
  maker
      .MakeGauge(
          "cache_config_info", "How the KV cache is configured.",
          {{"block_size", absl::StrCat(cache.page_size)},
           {"num_gpu_blocks", absl::StrCat(cache.num_pages)},
           {"cache_dtype", std::string(NameOf(cache.kv_type))},
           {"enable_prefix_caching", cache.prefix_cache ? "True" : "False"},
           {"kv_pool_bytes", absl::StrCat(cache.pool_bytes)}})
      ->Set(1);
}

}  // namespace

struct Metrics::Instruments {
  explicit Instruments(Maker maker);

  Gauge* const running;
  Gauge* const waiting;
  Gauge* const usage;
  Gauge* const pages_free;
  Gauge* const pages_in_use;
  Gauge* const pages_cached;
  Gauge* const tokens_held;
  Gauge* const waste_bytes;
  Gauge* const shared_bytes;

  Counter* const prefix_queries;
  Counter* const prefix_hits;
  Counter* const prompt_tokens;
  Counter* const generation_tokens;
  Counter* const preemptions;
  absl::flat_hash_map<FinishReason, Counter*> ends;

  Histogram* const first_token;
  Histogram* const gap;
  Histogram* const end_to_end;
  Histogram* const queue;
  Histogram* const prefill;
  Histogram* const decode;
  Histogram* const step_tokens;
  Histogram* const plan;
  Histogram* const forward;
  Histogram* const sample;
  Histogram* const commit;
};

Metrics::Instruments::Instruments(Maker maker)
    : running(maker.MakeGauge("num_requests_running",
                              "Requests in the batch; each sample is one.")),
      waiting(maker.MakeGauge("num_requests_waiting",
                              "Requests waiting to be processed.")),
      usage(maker.MakeGauge("kv_cache_usage_perc",
                            "Share of the KV pages in use, from 0 to 1.")),
      pages_free(MakePages(maker, "free")),
      pages_in_use(MakePages(maker, "in_use")),
      pages_cached(MakePages(maker, "cached")),
      tokens_held(maker.MakeGauge("kv_tokens_held",
                                  "Tokens with K/V in pages in use.")),
      waste_bytes(maker.MakeGauge(
          "kv_waste_bytes", "Bytes of pages in use that hold no token's K/V.")),
      shared_bytes(maker.MakeGauge(
          "kv_shared_bytes_saved",
          "Bytes that sequences would take more if they shared no pages.")),
      prefix_queries(
          maker.MakeCounter("prefix_cache_queries_total",
                            "Tokens looked up in the prefix cache.")),
      prefix_hits(maker.MakeCounter("prefix_cache_hits_total",
                                    "Tokens found in the prefix cache.")),
      prompt_tokens(maker.MakeCounter(
          "prompt_tokens_total", "Tokens of the prompts that were processed.")),
      generation_tokens(
          maker.MakeCounter("generation_tokens_total", "Tokens generated.")),
      preemptions(maker.MakeCounter(
          "num_preemptions_total",
          "Times that a running request was put back into the queue.")),
      first_token(maker.MakeHistogram(
          "time_to_first_token_seconds",
          "From a request's arrival to its first token.", FirstTokenBounds())),
      gap(maker.MakeHistogram("inter_token_latency_seconds",
                              "From tokens of a sample to the next ones.",
                              GapBounds())),
      end_to_end(maker.MakeHistogram("e2e_request_latency_seconds",
                                     "From a request's arrival to its end.",
                                     RequestBounds())),
      queue(maker.MakeHistogram(
          "request_queue_time_seconds",
          "From a request's arrival until it was admitted or ended.",
          RequestBounds())),
      prefill(maker.MakeHistogram(
          "request_prefill_time_seconds",
          "From a request's admission to its first token.", RequestBounds())),
      decode(maker.MakeHistogram("request_decode_time_seconds",
                                 "From a request's first token to its end.",
                                 RequestBounds())),
      step_tokens(maker.MakeHistogram("iteration_tokens_total",
                                      "Tokens computed in a step.",
                                      TokenBounds())),
      plan(MakePart(maker, "plan")),
      forward(MakePart(maker, "forward")),
      sample(MakePart(maker, "sample")),
      commit(MakePart(maker, "commit")) {
  for (const FinishReason reason : kFinishReasons) {
    ends[reason] = maker.MakeCounter("request_success_total",
                                     "Requests that ended, by how they did.",
                                     {{"finished_reason", NameOf(reason)}});
  }
}

Metrics::Metrics(const std::string& model_name, const CacheConfig& cache)
    : registry_(std::make_shared<prometheus::Registry>()),
      instruments_(
          std::make_unique<Instruments>(Maker(registry_.get(), model_name))) {
  Maker maker(registry_.get(), model_name);
  MakeCacheInfo(maker, cache);
  instruments_->pages_free->Set(cache.num_pages);
}

Metrics::~Metrics() = default;

void Metrics::Observe(const StepOutput& output) {
  if (output.stepped) ObserveStep(output.report);
  for (const TokenEvent& event : output.events) {
    if (event.terminal) {
      ObserveEnd(event);
    } else if (!event.sampled.tokens.empty()) {
      ObserveGap(event, output.time);
    }
  }
  SetGauges(output);
}

void Metrics::ObserveStep(const BatchReport& report) {
  const Instruments& to = *instruments_;
  to.prefix_queries->Increment(report.prefix_query_tokens);
  to.prefix_hits->Increment(report.prefix_hit_tokens);
  to.prompt_tokens->Increment(report.prompt_tokens);
  to.generation_tokens->Increment(report.generated_tokens);
  to.preemptions->Increment(report.sequences_preempted);
  for (const absl::Duration time : report.times_to_first_token) {
    to.first_token->Observe(absl::ToDoubleSeconds(time));
  }
  to.step_tokens->Observe(report.prefill_tokens + report.decode_tokens);
  to.plan->Observe(absl::ToDoubleSeconds(report.plan_duration));
  to.forward->Observe(absl::ToDoubleSeconds(report.forward_duration));
  to.sample->Observe(absl::ToDoubleSeconds(report.sample_duration));
  to.commit->Observe(absl::ToDoubleSeconds(report.commit_duration));
}

void Metrics::ObserveEnd(const TokenEvent& terminal) {
  const Instruments& to = *instruments_;
  const Usage& usage = terminal.usage;
  last_token_times_.erase(terminal.request_id);
  to.ends.at(terminal.finish_reason)->Increment();
  to.end_to_end->Observe(absl::ToDoubleSeconds(
      usage.queue_duration + usage.prefill_duration + usage.decode_duration));
  to.queue->Observe(absl::ToDoubleSeconds(usage.queue_duration));
  if (usage.generated_tokens == 0) return;
  to.prefill->Observe(absl::ToDoubleSeconds(usage.prefill_duration));
  to.decode->Observe(absl::ToDoubleSeconds(usage.decode_duration));
}

void Metrics::ObserveGap(const TokenEvent& event, absl::Time now) {
  std::vector<absl::Time>& times = last_token_times_[event.request_id];
  const size_t sample = event.sample_index;
  if (times.size() <= sample) times.resize(sample + 1, absl::InfinitePast());
  const absl::Time before = std::exchange(times[sample], now);
  if (before == absl::InfinitePast()) return;
  instruments_->gap->Observe(absl::ToDoubleSeconds(now - before));
}

void Metrics::SetGauges(const StepOutput& output) {
  const Instruments& to = *instruments_;
  const EngineLoad& load = output.load;
  to.running->Set(load.sequences_running);
  to.waiting->Set(load.sequences_waiting);
  to.usage->Set(load.pages_total == 0 ? 0
                                      : static_cast<double>(load.pages_in_use) /
                                            load.pages_total);
  to.pages_free->Set(load.pages_free);
  to.pages_in_use->Set(load.pages_in_use);
  to.pages_cached->Set(load.pages_cached);
  if (load.pages_in_use == 0) {
    to.tokens_held->Set(0);
    to.waste_bytes->Set(0);
    to.shared_bytes->Set(0);
  } else if (output.stepped) {
    const MemoryReport& memory = output.report.memory;
    to.tokens_held->Set(static_cast<double>(memory.tokens_held));
    to.waste_bytes->Set(static_cast<double>(memory.bytes_waste()));
    to.shared_bytes->Set(static_cast<double>(memory.bytes_shared()));
  }
}

}  // namespace folio
