#include "runtime/engine/request_limits.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/field_error.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

std::string ElementOf(std::string_view field, size_t index) {
  return absl::StrCat(std::string(field), "[", index, "]");
}

absl::Status CheckToken(const std::string& field, TokenId token,
                        int32_t vocab_size) {
  if (token >= 0 && token < vocab_size) return absl::OkStatus();
  return FieldError(
      field, absl::StrCat(" is ", token, "; the model's token ids are 0 to ",
                          vocab_size - 1));
}

absl::Status CheckTokens(std::string_view field,
                         std::span<const TokenId> tokens, int32_t vocab_size) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab_size) continue;
    return CheckToken(ElementOf(field, i), tokens[i], vocab_size);
  }
  return absl::OkStatus();
}

absl::Status CheckCount(std::string_view field, size_t count, int64_t most) {
  if (static_cast<int64_t>(count) <= most) return absl::OkStatus();
  return FieldError(field, absl::StrCat(" has ", count, " entries; at most ",
                                        most, " are allowed"));
}

// A NaN is in no range.
absl::Status CheckRange(std::string_view field, float value, float least,
                        float most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return FieldError(
      field, absl::StrCat(" is ", value, "; it must be ", least, " to ", most));
}

absl::Status CheckDraw(const SamplingParams& sampling) {
  const float temperature = sampling.temperature;
  if (!std::isfinite(temperature) || temperature < 0) {
    return FieldError(
        "sampling.temperature",
        absl::StrCat(" is ", temperature,
                     "; it must be a finite number of at least 0 (0: greedy)"));
  }
  if (sampling.top_k < 0) {
    return FieldError("sampling.top_k",
                      absl::StrCat(" is ", sampling.top_k,
                                   "; it must be at least 0 (0: no limit)"));
  }
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) {
    return FieldError(
        "sampling.top_p",
        absl::StrCat(" is ", sampling.top_p,
                     "; it must be above 0 and at most 1 (1: no limit)"));
  }
  return CheckRange("sampling.min_p", sampling.min_p, 0, 1);
}

absl::Status CheckPenalties(const SamplingParams& sampling) {
  FOLIO_RETURN_IF_ERROR(CheckRange("sampling.repetition_penalty",
                                   sampling.repetition_penalty,
                                   RequestLimits::kMinRepetitionPenalty,
                                   RequestLimits::kMaxRepetitionPenalty));
  constexpr float kMost = RequestLimits::kMaxPenalty;
  FOLIO_RETURN_IF_ERROR(CheckRange("sampling.presence_penalty",
                                   sampling.presence_penalty, -kMost, kMost));
  return CheckRange("sampling.frequency_penalty", sampling.frequency_penalty,
                    -kMost, kMost);
}

}  // namespace

absl::Status RequestCaps::Validate() const {
  const auto at_least = [](const char* name, int64_t value, int64_t least) {
    if (value >= least) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", value, "; it must be at least ", least));
  };
  FOLIO_RETURN_IF_ERROR(at_least("max_prompt_tokens", max_prompt_tokens, 1));
  FOLIO_RETURN_IF_ERROR(at_least("max_samples", max_samples, 1));
  return at_least("max_logprobs", max_logprobs, 0);
}

int32_t RequestLimits::MaxPromptTokens() const {
  return static_cast<int32_t>(std::min<int64_t>(
      {max_prompt_tokens, context_length - 1, pool_tokens - 1}));
}

absl::Status RequestLimits::CheckSampling(
    const SamplingParams& sampling) const {
  FOLIO_RETURN_IF_ERROR(CheckDraw(sampling));
  FOLIO_RETURN_IF_ERROR(CheckPenalties(sampling));
  FOLIO_RETURN_IF_ERROR(CheckCount("sampling.allowed_token_ids",
                                   sampling.allowed_tokens.size(), vocab_size));
  FOLIO_RETURN_IF_ERROR(CheckTokens("sampling.allowed_token_ids",
                                    sampling.allowed_tokens, vocab_size));
  FOLIO_RETURN_IF_ERROR(CheckCount("sampling.bad_words",
                                   sampling.bad_words.size(), kMaxBadWords));
  for (const std::vector<TokenId>& word : sampling.bad_words) {
    FOLIO_RETURN_IF_ERROR(CheckTokens("sampling.bad_words", word, vocab_size));
  }
  FOLIO_RETURN_IF_ERROR(CheckCount("sampling.logit_bias",
                                   sampling.logit_bias.size(), kMaxBiases));
  for (const auto& [token, bias] : sampling.logit_bias) {
    if (token < 0 || token >= vocab_size) {
      return FieldError(
          "sampling.logit_bias",
          absl::StrCat(" has a bias for token ", token,
                       "; the model's token ids are 0 to ", vocab_size - 1));
    }
    FOLIO_RETURN_IF_ERROR(
        CheckRange(absl::StrCat("sampling.logit_bias[", token, "]"), bias,
                   -kMaxBias, kMaxBias));
  }
  return absl::OkStatus();
}

absl::Status RequestLimits::CheckLogprobs(const Request& request) const {
  const SamplingParams& sampling = request.sampling;
  const int32_t most = std::min(kMaxLogprobs, vocab_size);
  const int32_t logprobs = sampling.logprobs.value_or(0);
  if (logprobs < 0 || logprobs > most) {
    return FieldError(
        "sampling.logprobs",
        absl::StrCat(" is ", logprobs, "; it must be 0 to ", most));
  }
  const int64_t prompt_tokens = static_cast<int64_t>(request.prompt.size());
  const int64_t room =
      std::min<int64_t>(context_length, pool_tokens) - prompt_tokens;
  int64_t tokens = 0;
  if (sampling.logprobs.has_value()) {
    tokens +=
        request.n * std::min<int64_t>(room, request.max_tokens.value_or(room));
  }
  if (sampling.prompt_logprobs) tokens += prompt_tokens;
  if (tokens * (1 + logprobs) <= max_logprobs) return absl::OkStatus();
  return FieldError(
      sampling.logprobs.has_value() ? "sampling.logprobs"
                                    : "sampling.prompt_logprobs",
      absl::StrCat(": up to ", tokens, " tokens with ", 1 + logprobs,
                   " logprobs each are asked for; this server gives ",
                   max_logprobs,
                   " to one request. Ask for fewer, or set max_tokens"));
}

absl::Status RequestLimits::CheckStops(const Request& request) const {
  FOLIO_RETURN_IF_ERROR(
      CheckCount("stop_token_ids", request.stop_tokens.size(), kMaxStopTokens));
  FOLIO_RETURN_IF_ERROR(
      CheckTokens("stop_token_ids", request.stop_tokens, vocab_size));
  FOLIO_RETURN_IF_ERROR(
      CheckCount("stop", request.stop_strings.size(), kMaxStopStrings));
  for (size_t i = 0; i < request.stop_strings.size(); ++i) {
    const size_t bytes = request.stop_strings[i].size();
    if (bytes >= 1 && bytes <= kMaxStopBytes) continue;
    return FieldError(ElementOf("stop", i),
                      absl::StrCat(" has ", bytes, " bytes; it must have 1 to ",
                                   kMaxStopBytes));
  }
  return absl::OkStatus();
}

absl::Status RequestLimits::CheckPrompt(const Request& request) const {
  const int64_t prompt_tokens = static_cast<int64_t>(request.prompt.size());
  if (prompt_tokens == 0) {
    return FieldError("input",
                      ": the prompt is empty, and this model has no BOS token "
                      "to start from; give at least one token");
  }
  if (prompt_tokens > max_prompt_tokens) {
    return FieldError("input", absl::StrCat(": the prompt has ", prompt_tokens,
                                            " tokens; this server takes ",
                                            max_prompt_tokens, " at most"));
  }
  if (prompt_tokens + 1 > context_length) {
    return FieldError(
        "input",
        absl::StrCat(
            ": the prompt has ", prompt_tokens,
            " tokens; with one generated token that is more than the model's "
            "context of ",
            context_length, " tokens. Shorten the prompt to at most ",
            context_length - 1));
  }
  if (prompt_tokens + 1 > pool_tokens) {
    return FieldError(
        "input",
        absl::StrCat(
            ": the prompt has ", prompt_tokens,
            " tokens; with one generated token that is more than the whole KV "
            "pool's ",
            pool_tokens, " tokens. Shorten the prompt to at most ",
            pool_tokens - 1, ", or start the server with a larger --kv-pool"));
  }
  return CheckTokens("token_ids", request.prompt, vocab_size);
}

absl::Status RequestLimits::Check(const Request& request) const {
  FOLIO_RETURN_IF_ERROR(CheckPrompt(request));
  FOLIO_RETURN_IF_ERROR(CheckStops(request));
  FOLIO_RETURN_IF_ERROR(CheckSampling(request.sampling));
  if (request.max_tokens.has_value() && *request.max_tokens < 0) {
    return FieldError(
        "max_tokens",
        absl::StrCat(" is ", *request.max_tokens,
                     "; it must be at least 0 (absent: as many as fit)"));
  }
  const int32_t most_tokens = request.max_tokens.value_or(context_length);
  if (request.min_tokens < 0 || request.min_tokens > most_tokens) {
    return FieldError(
        "min_tokens",
        absl::StrCat(" is ", request.min_tokens, "; it must be 0 to ",
                     most_tokens,
                     request.max_tokens.has_value() ? ", which is max_tokens"
                                                    : ", the model's context"));
  }
  if (request.n < 1 || request.n > max_samples) {
    return FieldError(
        "n", absl::StrCat(" is ", request.n, "; it must be 1 to ", max_samples,
                          ", the most samples of one request"));
  }
  if (request.priority < -kMaxPriority || request.priority > kMaxPriority) {
    return FieldError("priority",
                      absl::StrCat(" is ", request.priority, "; it must be ",
                                   -kMaxPriority, " to ", kMaxPriority));
  }
  if (request.tenant.size() > kMaxTenantBytes) {
    return FieldError("tenant", absl::StrCat(" has ", request.tenant.size(),
                                             " bytes; it may have ",
                                             kMaxTenantBytes, " at most"));
  }
  return CheckLogprobs(request);
}

absl::Status RequestLimits::CheckSomethingIsLeft(const Request& request) const {
  const SamplingParams& sampling = request.sampling;
  std::set<TokenId> ruled_out;
  for (const std::vector<TokenId>& word : sampling.bad_words) {
    if (word.size() == 1) ruled_out.insert(word.front());
  }
  if (request.min_tokens > 0) {
    ruled_out.insert(request.stop_tokens.begin(), request.stop_tokens.end());
  }
  const std::vector<TokenId>& allowed = sampling.allowed_tokens;
  const bool is_left = allowed.empty()
                           ? static_cast<int32_t>(ruled_out.size()) < vocab_size
                           : std::ranges::any_of(allowed, [&](TokenId token) {
                               return !ruled_out.contains(token);
                             });
  if (is_left) return absl::OkStatus();
  return FieldError(
      allowed.empty() ? "sampling.bad_words" : "sampling.allowed_token_ids",
      ": bad_words, and stop tokens with min_tokens, rule out all tokens that "
      "are allowed; allow others, or rule out fewer");
}

}  // namespace folio
