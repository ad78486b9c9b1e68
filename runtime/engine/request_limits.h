// Which requests an engine takes.

#ifndef RUNTIME_ENGINE_REQUEST_LIMITS_H_
#define RUNTIME_ENGINE_REQUEST_LIMITS_H_

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "scheduler/request.h"

namespace folio {

// What a server's owner lets one request have, below what would be possible.
struct RequestCaps {
  int32_t max_prompt_tokens = std::numeric_limits<int32_t>::max();
  int32_t max_samples = std::numeric_limits<int32_t>::max();  // `n`.
  // Logprobs of one request with all their alternatives: for n samples of t
  // tokens n * t * (1 + logprobs), and as many for each token of the prompt if
  // they are asked for. Each takes some 64 bytes while a client does not read.
  int64_t max_logprobs = int64_t{1} << 20;

  absl::Status Validate() const;
};

// Constant while an engine lives, so any thread may check against it.
struct RequestLimits {
  // The most alternatives that one token's logprobs can list.
  static constexpr int32_t kMaxLogprobs = 20;
  // Each sampled token is compared to all of them.
  static constexpr int32_t kMaxStopTokens = 256;
  // Each byte of text is compared to all of them; as much text may be held back
  // as the longest has.
  static constexpr int32_t kMaxStopStrings = 64;
  static constexpr int32_t kMaxStopBytes = 1024;
  // Applied to each row of logits.
  static constexpr int32_t kMaxBiases = 1024;
  static constexpr int32_t kMaxBadWords = 512;
  static constexpr float kMaxBias = 100;
  static constexpr float kMinRepetitionPenalty = 0.01f;
  static constexpr float kMaxRepetitionPenalty = 100;
  static constexpr float kMaxPenalty = 2;  // Presence and frequency; or minus.
  // The range of priorities, from -kMaxPriority to kMaxPriority: the wait of
  // the lowest class is bounded by it.
  static constexpr int32_t kMaxPriority = 100;
  // Tenants' names are kept while they are served.
  static constexpr int32_t kMaxTenantBytes = 256;

  int32_t vocab_size = 0;
  int32_t context_length = 0;  // Of the model, in tokens.
  int64_t pool_tokens = 0;     // What the whole KV pool can hold.
  int32_t max_samples = 1;     // Of one request.
  int32_t max_prompt_tokens = RequestCaps().max_prompt_tokens;
  int64_t max_logprobs = RequestCaps().max_logprobs;

  // The longest prompt that fits, in tokens.
  int32_t MaxPromptTokens() const;

  // A FieldError says what was found and what is allowed. A request that passes
  // can be served to its end.
  absl::Status Check(const Request& request) const;

  // Whether what `request` allows and what it rules out leave any token to be
  // sampled first; for a request that is complete, with the model's stop
  // tokens.
  absl::Status CheckSomethingIsLeft(const Request& request) const;

 private:
  absl::Status CheckSampling(const SamplingParams& sampling) const;
  absl::Status CheckLogprobs(const Request& request) const;
  absl::Status CheckStops(const Request& request) const;
  absl::Status CheckPrompt(const Request& request) const;
};

}  // namespace folio

#endif  // RUNTIME_ENGINE_REQUEST_LIMITS_H_
