// Tokens, and what the model thought of them.

#ifndef SCHEDULER_SCORED_TOKENS_H_
#define SCHEDULER_SCORED_TOKENS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/types.h"

namespace folio {

struct TokenLogprob {
  TokenId token;
  float logprob;
};

// A run of tokens with their logprobs, in flat arrays that keep their memory
// when they are cleared.
struct ScoredTokens {
  std::vector<TokenId> tokens;
  // [tokens.size()], or empty: not asked for.
  std::vector<float> logprobs;
  // [tokens.size(), top_count]: alternatives for each token, likeliest first.
  std::vector<TokenLogprob> top;
  int32_t top_count = 0;

  std::span<const TokenLogprob> TopOf(size_t i) const {
    return std::span(top).subspan(i * top_count, top_count);
  }

  // Keeps the first `count` tokens. REQUIRES: count <= tokens.size().
  void Truncate(size_t count) {
    tokens.resize(count);
    if (!logprobs.empty()) logprobs.resize(count);
    top.resize(count * top_count);
  }

  void Clear() {
    tokens.clear();
    logprobs.clear();
    top.clear();
    top_count = 0;
  }
};

}  // namespace folio

#endif  // SCHEDULER_SCORED_TOKENS_H_
