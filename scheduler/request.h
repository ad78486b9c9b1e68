// What a client asked for.

#ifndef SCHEDULER_REQUEST_H_
#define SCHEDULER_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runtime/base/types.h"

namespace folio {

// How tokens are chosen from logits.
struct SamplingParams {
  // 0 takes the likeliest token; T > 0 draws from softmax(logits / T).
  float temperature = 0;
  // Draw among the `top_k` greatest logits only. 0: all.
  int32_t top_k = 0;
  // Of those, draw among the fewest likeliest that together have this share of
  // their probability, in (0, 1]. 1: all.
  float top_p = 1;
  // Sample i draws from the stream of seed + i, whatever runs beside it. Absent
  // in what a client sends; the engine then draws one and reports it.
  std::optional<uint64_t> seed;
  // Absent: no logprobs. Else the logprob of each sampled token and of the
  // `*logprobs` likeliest at its place, of the raw distribution (temperature
  // 1).
  std::optional<int32_t> logprobs;
  // Whether to give the logprob of each prompt token after the first, too.
  bool prompt_logprobs = false;
};

// Immutable once submitted.
struct Request {
  RequestId id{};
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  // Absent: as many as `limit` allows. 0: only prompt logprobs and usage.
  std::optional<int32_t> max_tokens;
  // Sampling one of these ends a sample; the token itself is its last one.
  std::vector<TokenId> stop_tokens;
  // Unless set, the model's end-of-sequence tokens are stop tokens, too.
  bool ignore_eos = false;
  // How many samples to generate; all share the K/V of the prompt.
  int32_t n = 1;
  // Of two that wait, a smaller number goes first (policy "priority").
  int32_t priority = 0;
  // Whom it is for: the unit of fairness and of limits. Tenants never share
  // K/V.
  std::string tenant;
  // What else, besides tokens, decides what K/V is and who may share it. Made
  // by the engine.
  std::string cache_salt;
  absl::Time arrival = absl::InfinitePast();  // Set when it is submitted.
  absl::Time deadline = absl::InfiniteFuture();
};

}  // namespace folio

#endif  // SCHEDULER_REQUEST_H_
