#include "bench/load/report_sample.h"

#include "runtime/server/duration_conversion.h"

namespace folio {
namespace {

void TakeMemory(const v1::MemoryReport& memory, BatchSample& sample) {
  sample.page_size = memory.page_size();
  sample.page_bytes = memory.page_bytes();
  sample.bytes_per_token = memory.bytes_per_token();
  sample.pages_total = memory.pages_total();
  sample.pages_free = memory.pages_free();
  sample.pages_in_use = memory.pages_in_use();
  sample.pages_cached = memory.pages_cached();
  sample.pages_shared = memory.pages_shared();
  sample.tokens_held = memory.tokens_held();
  sample.waste_bytes = memory.waste_bytes();
  for (const v1::SequenceMemory& sequence : memory.sequences()) {
    sample.sequences.push_back({.request = sequence.request_id(),
                                .pages = sequence.pages(),
                                .shared_pages = sequence.shared_pages(),
                                .tokens = sequence.tokens()});
  }
}

void TakeMemory(const MemoryReport& memory,
                const std::function<std::string(RequestId)>& name_of,
                BatchSample& sample) {
  sample.page_size = memory.page_size;
  sample.page_bytes = memory.page_bytes;
  sample.bytes_per_token = memory.bytes_per_token();
  sample.pages_total = memory.pages_total;
  sample.pages_free = memory.pages_free;
  sample.pages_in_use = memory.pages_in_use;
  sample.pages_cached = memory.pages_cached;
  sample.pages_shared = memory.pages_shared;
  sample.tokens_held = memory.tokens_held;
  sample.waste_bytes = memory.bytes_waste();
  for (const SequenceMemory& sequence : memory.sequences) {
    sample.sequences.push_back({.request = name_of(sequence.request),
                                .pages = sequence.pages,
                                .shared_pages = sequence.shared_pages,
                                .tokens = sequence.tokens});
  }
}

}  // namespace

BatchSample SampleOf(const v1::BatchReport& report) {
  BatchSample sample{.step = report.step(),
                     .start = absl::UnixEpoch() + ToDuration(report.start()),
                     .duration = ToDuration(report.duration()),
                     .forward_duration = ToDuration(report.forward_duration()),
                     .prefill_tokens = report.prefill_tokens(),
                     .decode_tokens = report.decode_tokens(),
                     .running = report.sequences_running(),
                     .waiting = report.sequences_waiting(),
                     .preempted = report.sequences_preempted(),
                     .pages_evicted = report.pages_evicted(),
                     .prefix_query_tokens = report.prefix_query_tokens(),
                     .prefix_hit_tokens = report.prefix_hit_tokens(),
                     .dropped = report.dropped_reports()};
  TakeMemory(report.memory(), sample);
  return sample;
}

BatchSample SampleOf(const BatchReport& report,
                     const std::function<std::string(RequestId)>& name_of) {
  BatchSample sample{.step = report.step,
                     .start = report.start,
                     .duration = report.duration,
                     .forward_duration = report.forward_duration,
                     .prefill_tokens = report.prefill_tokens,
                     .decode_tokens = report.decode_tokens,
                     .running = report.sequences_running,
                     .waiting = report.sequences_waiting,
                     .preempted = report.sequences_preempted,
                     .pages_evicted = report.pages_evicted,
                     .prefix_query_tokens = report.prefix_query_tokens,
                     .prefix_hit_tokens = report.prefix_hit_tokens};
  TakeMemory(report.memory, name_of, sample);
  return sample;
}

}  // namespace folio
