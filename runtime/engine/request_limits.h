// Which requests an engine takes.

#ifndef RUNTIME_ENGINE_REQUEST_LIMITS_H_
#define RUNTIME_ENGINE_REQUEST_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "scheduler/request.h"

namespace folio {

// Constant while an engine lives, so any thread may check against it.
struct RequestLimits {
  // The most alternatives that one token's logprobs can list.
  static constexpr int32_t kMaxLogprobs = 20;
  // Each sampled token is compared to all of them.
  static constexpr int32_t kMaxStopTokens = 256;
  // The range of priorities, from -kMaxPriority to kMaxPriority: the wait of
  // the lowest class is bounded by it.
  static constexpr int32_t kMaxPriority = 100;
  // Tenants' names are kept while they are served.
  static constexpr int32_t kMaxTenantBytes = 256;

  int32_t vocab_size = 0;
  int32_t context_length = 0;  // Of the model, in tokens.
  int64_t pool_tokens = 0;     // What the whole KV pool can hold.
  int32_t max_samples = 1;     // Of one request.

  // INVALID_ARGUMENT names the field (as the proto does), what was found and
  // what is allowed. A request that passes can be served to its end.
  absl::Status Check(const Request& request) const;
};

}  // namespace folio

#endif  // RUNTIME_ENGINE_REQUEST_LIMITS_H_
