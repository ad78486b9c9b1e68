#include "runtime/server/report_conversion.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "runtime/server/duration_conversion.h"

namespace folio {
namespace {

v1::WaitReason ToProto(WaitReason reason) {
  switch (reason) {
    case WaitReason::kNone:
      return v1::WAIT_REASON_UNSPECIFIED;
    case WaitReason::kTokens:
      return v1::WAIT_REASON_TOKENS;
    case WaitReason::kSequences:
      return v1::WAIT_REASON_SEQUENCES;
    case WaitReason::kPages:
      return v1::WAIT_REASON_PAGES;
    case WaitReason::kWatermark:
      return v1::WAIT_REASON_WATERMARK;
    case WaitReason::kPolicy:
      return v1::WAIT_REASON_POLICY;
  }
  return v1::WAIT_REASON_UNSPECIFIED;
}

void SetSequences(const MemoryReport& memory, const RequestRegistry& registry,
                  v1::MemoryReport& proto) {
  std::vector<std::string> names = registry.NamesOf(memory.sequences);
  for (size_t i = 0; i < memory.sequences.size(); ++i) {
    const SequenceMemory& sequence = memory.sequences[i];
    v1::SequenceMemory& entry = *proto.add_sequences();
    entry.set_request_id(std::move(names[i]));
    entry.set_sample_index(sequence.sample_index);
    entry.set_pages(sequence.pages);
    entry.set_shared_pages(sequence.shared_pages);
    entry.set_tokens(sequence.tokens);
  }
}

void SetMemory(const MemoryReport& memory, const RequestRegistry& registry,
               v1::MemoryReport& proto) {
  proto.set_page_size(memory.page_size);
  proto.set_page_bytes(memory.page_bytes);
  proto.set_page_scale_bytes(memory.page_scale_bytes);
  proto.set_page_padding_bytes(memory.page_padding_bytes);
  proto.set_bytes_per_token(memory.bytes_per_token());
  proto.set_pool_bytes(memory.pool_bytes);
  proto.set_remainder_bytes(memory.remainder_bytes);
  proto.set_context_length(memory.context_length);
  proto.set_pages_total(memory.pages_total);
  proto.set_pages_free(memory.pages_free);
  proto.set_pages_in_use(memory.pages_in_use);
  proto.set_pages_cached(memory.pages_cached);
  proto.set_duplicate_pages_saved(memory.duplicate_pages_saved);
  proto.set_pages_shared(memory.pages_shared);
  proto.set_shared_saved_bytes(memory.bytes_shared());
  proto.set_tokens_held(memory.tokens_held);
  proto.set_reserved_bytes(memory.bytes_reserved());
  proto.set_holding_bytes(memory.bytes_holding());
  proto.set_waste_bytes(memory.bytes_waste());
  proto.set_waste_share(memory.waste_share());
  proto.set_contiguous_bytes(memory.bytes_contiguous());
  SetSequences(memory, registry, proto);
}

}  // namespace

v1::BatchReport ToProto(const BatchReport& report,
                        const RequestRegistry& registry) {
  v1::BatchReport proto;
  proto.set_step(report.step);
  SetDuration(report.start - absl::UnixEpoch(), *proto.mutable_start());
  SetDuration(report.duration, *proto.mutable_duration());
  SetDuration(report.forward_duration, *proto.mutable_forward_duration());
  proto.set_prefill_tokens(report.prefill_tokens);
  proto.set_decode_tokens(report.decode_tokens);
  proto.set_sequences_running(report.sequences_running);
  proto.set_sequences_waiting(report.sequences_waiting);
  proto.set_sequences_preempted(report.sequences_preempted);
  proto.set_wait_reason(ToProto(report.wait_reason));
  proto.set_prefix_query_tokens(report.prefix_query_tokens);
  proto.set_prefix_hit_tokens(report.prefix_hit_tokens);
  proto.set_pages_evicted(report.pages_evicted);
  proto.set_pages_copied(report.pages_copied);
  if (report.predicted_duration > absl::ZeroDuration()) {
    SetDuration(report.predicted_duration, *proto.mutable_predicted_duration());
  }
  if (report.commit_interval > absl::ZeroDuration()) {
    SetDuration(report.commit_interval, *proto.mutable_commit_interval());
  }
  SetMemory(report.memory, registry, *proto.mutable_memory());
  return proto;
}

}  // namespace folio
