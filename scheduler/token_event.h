// What leaves the engine.

#ifndef SCHEDULER_TOKEN_EVENT_H_
#define SCHEDULER_TOKEN_EVENT_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "runtime/base/recycled_vector.h"
#include "runtime/base/types.h"
#include "scheduler/scored_tokens.h"

namespace folio {

enum class FinishReason {
  kNone,    // Not finished.
  kStop,    // A stop token or string, or no token was left to sample.
  kLength,  // `limit` was reached.
  kCancelled,
  kAborted,  // By somebody else than whoever sent it.
  kDeadline,
  kShutdown,  // The engine was closed.
  kError,     // The model gave logits that are not numbers.
};

// What a request has cost, all of its samples together.
struct Usage {
  int32_t prompt_tokens = 0;
  int32_t generated_tokens = 0;
  // Of the prompt, tokens whose K/V was there already when it was admitted
  // first.
  int32_t cached_tokens = 0;
  int32_t preemptions = 0;
  // The most pages that its samples had at once; a page that k of them share
  // counts k times.
  int32_t peak_pages = 0;

  // From its arrival until it is admitted first, from then to the first token,
  // and from that to the end; zero for what was not reached.
  absl::Duration queue_duration;
  absl::Duration prefill_duration;
  absl::Duration decode_duration;
};

// News of one request. Events of a sample carry its tokens in order, the last
// of them its finish reason. The request's one terminal event follows its last
// sample, whatever happened.
struct TokenEvent {
  RequestId request_id{};
  int32_t sample_index = 0;
  ScoredTokens sampled;  // With stop strings, those whose text is complete.
  ScoredTokens prompt;   // Only logprobs of prompt tokens, when asked for.
  std::string text;  // Valid UTF-8; lags behind `sampled` inside characters.
  FinishReason finish_reason = FinishReason::kNone;
  std::string stop;  // The stop string that was found, if any.

  // In the terminal event `usage` is complete, finish_reason is that of the
  // last sample, and the rest is empty.
  bool terminal = false;
  Usage usage;

  void Clear() {
    request_id = RequestId{};
    sample_index = 0;
    sampled.Clear();
    prompt.Clear();
    text.clear();
    finish_reason = FinishReason::kNone;
    stop.clear();
    terminal = false;
    usage = Usage{};
  }
};

using TokenEvents = RecycledVector<TokenEvent>;

}  // namespace folio

#endif  // SCHEDULER_TOKEN_EVENT_H_
