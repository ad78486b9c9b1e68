#include "runtime/engine/request_limits.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

absl::Status CheckTokens(std::string_view field,
                         std::span<const TokenId> tokens, int32_t vocab_size) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(field), "[", i, "] is ", tokens[i],
                       "; the model's token ids are 0 to ", vocab_size - 1));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSampling(const SamplingParams& sampling, int32_t vocab_size) {
  const float temperature = sampling.temperature;
  if (!std::isfinite(temperature) || temperature < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.temperature is ", temperature,
                     "; it must be a finite number of at least 0 (0: greedy)"));
  }
  if (sampling.top_k < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.top_k is ", sampling.top_k,
                     "; it must be at least 0 (0: no limit)"));
  }
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) {  // A NaN is neither.
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.top_p is ", sampling.top_p,
                     "; it must be above 0 and at most 1 (1: no limit)"));
  }
  const int32_t most = std::min(RequestLimits::kMaxLogprobs, vocab_size);
  const int32_t logprobs = sampling.logprobs.value_or(0);
  if (logprobs < 0 || logprobs > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sampling.logprobs is ", logprobs, "; it must be 0 to ", most));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RequestLimits::Check(const Request& request) const {
  const int64_t prompt_tokens = static_cast<int64_t>(request.prompt.size());
  if (prompt_tokens == 0) {
    return absl::InvalidArgumentError(
        "input: the prompt is empty, and this model has no BOS token to start "
        "from; "
        "give at least one token");
  }
  FOLIO_RETURN_IF_ERROR(CheckTokens("token_ids", request.prompt, vocab_size));
  if (request.stop_tokens.size() > kMaxStopTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("stop_token_ids has ", request.stop_tokens.size(),
                     " entries; at most ", kMaxStopTokens, " are allowed"));
  }
  FOLIO_RETURN_IF_ERROR(
      CheckTokens("stop_token_ids", request.stop_tokens, vocab_size));
  FOLIO_RETURN_IF_ERROR(CheckSampling(request.sampling, vocab_size));
  if (request.max_tokens.has_value() && *request.max_tokens < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_tokens is ", *request.max_tokens,
                     "; it must be at least 0 (absent: as many as fit)"));
  }
  if (request.n < 1 || request.n > max_samples) {
    return absl::InvalidArgumentError(
        absl::StrCat("n is ", request.n, "; it must be 1 to ", max_samples,
                     ", the sequences that this server runs at once"));
  }
  if (request.priority < -kMaxPriority || request.priority > kMaxPriority) {
    return absl::InvalidArgumentError(
        absl::StrCat("priority is ", request.priority, "; it must be ",
                     -kMaxPriority, " to ", kMaxPriority));
  }
  if (request.tenant.size() > kMaxTenantBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("tenant has ", request.tenant.size(),
                     " bytes; it may have ", kMaxTenantBytes, " at most"));
  }
  if (prompt_tokens + 1 > context_length) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input: the prompt has ", prompt_tokens,
        " tokens; with one generated token that is more than the model's "
        "context of ",
        context_length, " tokens. Shorten the prompt to at most ",
        context_length - 1));
  }
  if (prompt_tokens + 1 > pool_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input: the prompt has ", prompt_tokens,
        " tokens; with one generated token that is more than the whole KV "
        "pool's ",
        pool_tokens, " tokens. Shorten the prompt to at most ", pool_tokens - 1,
        ", or start the server with a larger --kv-pool"));
  }
  return absl::OkStatus();
}

}  // namespace folio
