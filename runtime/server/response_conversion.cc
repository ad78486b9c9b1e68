#include "runtime/server/response_conversion.h"

#include <cstddef>

#include "runtime/server/duration_conversion.h"

namespace folio {
namespace {

void AppendScored(
    const ScoredTokens& scored,
    google::protobuf::RepeatedPtrField<v1::ScoredToken>& destination) {
  for (size_t i = 0; i < scored.logprobs.size(); ++i) {
    v1::ScoredToken& token = *destination.Add();
    token.set_token_id(scored.tokens[i]);
    token.set_logprob(scored.logprobs[i]);
    for (const TokenLogprob& alternative : scored.TopOf(i)) {
      v1::TokenLogprob& top = *token.add_top();
      top.set_token_id(alternative.token);
      top.set_logprob(alternative.logprob);
    }
  }
}

v1::FinishReason ToProto(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return v1::FINISH_REASON_STOP;
    case FinishReason::kLength:
      return v1::FINISH_REASON_LENGTH;
    case FinishReason::kNone:
    case FinishReason::kCancelled:
    case FinishReason::kAborted:
    case FinishReason::kDeadline:
    case FinishReason::kShutdown:
    case FinishReason::kError:
      break;  // The status of the call says these.
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

}  // namespace

void AppendToProto(const TokenEvent& event, v1::GenerateResponse& response) {
  if (event.terminal) {
    v1::Usage& usage = *response.mutable_usage();
    usage.set_prompt_tokens(event.usage.prompt_tokens);
    usage.set_generated_tokens(event.usage.generated_tokens);
    usage.set_preemptions(event.usage.preemptions);
    usage.set_cached_tokens(event.usage.cached_tokens);
    usage.set_peak_pages(event.usage.peak_pages);
    SetDuration(event.usage.queue_duration, *usage.mutable_queue_duration());
    SetDuration(event.usage.prefill_duration,
                *usage.mutable_prefill_duration());
    SetDuration(event.usage.decode_duration, *usage.mutable_decode_duration());
    return;
  }
  response.set_sample_index(event.sample_index);
  response.mutable_token_ids()->Add(event.sampled.tokens.begin(),
                                    event.sampled.tokens.end());
  response.mutable_text()->append(event.text);
  AppendScored(event.sampled, *response.mutable_logprobs());
  AppendScored(event.prompt, *response.mutable_prompt_logprobs());
  if (event.finish_reason != FinishReason::kNone) {
    response.set_finish_reason(ToProto(event.finish_reason));
    if (!event.stop.empty()) response.set_stop(event.stop);
  }
}

}  // namespace folio
