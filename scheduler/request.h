// What a client asked for.

#ifndef SCHEDULER_REQUEST_H_
#define SCHEDULER_REQUEST_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "runtime/base/types.h"
#include "scheduler/token_mask.h"

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
  // Of those, draw among tokens at least this share as likely as the likeliest
  // one, in [0, 1]. 0: all.
  float min_p = 0;

  // What follows changes the logits, in this order, before all of the above.
  // The only tokens that may be sampled; empty: all.
  std::vector<TokenId> allowed_tokens;
  // Runs of tokens that must not be completed.
  std::vector<std::vector<TokenId>> bad_words;
  // Then a logit x becomes x + its bias; then, if the token is in the prompt or
  // was generated, x / repetition_penalty where x > 0 and x *
  // repetition_penalty elsewhere; then x - presence_penalty - frequency_penalty
  // * (how often it was generated), if it was. (The repetition penalty is
  // Keskar et al.'s, "CTRL", 2019, with the sign minded; the others are
  // OpenAI's.)
  std::vector<std::pair<TokenId, float>> logit_bias;  // One for a token.
  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;

  // Sample i draws from the stream of seed + i, whatever runs beside it. Absent
  // in what a client sends; the engine then draws one and reports it.
  std::optional<uint64_t> seed;
  // Absent: no logprobs. Else the logprob of each sampled token and of the
  // `*logprobs` likeliest at its place, of the raw distribution (temperature
  // 1).
  std::optional<int32_t> logprobs;
  // Logprobs of sampled tokens are of the logits as changed, at the temperature
  // (at 0: 1), before top_k, top_p and min_p.
  bool processed_logprobs = false;
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
  // Text that ends a sample: UTF-8, not empty. See StopMatcher.
  std::vector<std::string> stop_strings;
  bool include_stop = false;  // Whether the text ends with it.
  // A sample has so many tokens before any of these can end it.
  int32_t min_tokens = 0;
  // What may be sampled, at the start; each sample gets a clone of each.
  std::vector<std::shared_ptr<const TokenMask>> masks;
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
