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

  // Appends the first `count` tokens of `other`. REQUIRES: count <=
  // other.tokens.size(); what is asked for is the same in both.
  void Append(const ScoredTokens& other, size_t count) {
    if (count == 0) return;
    top_count = other.top_count;
    tokens.insert(tokens.end(), other.tokens.begin(),
                  other.tokens.begin() + count);
    top.insert(top.end(), other.top.begin(),
               other.top.begin() + count * top_count);
    if (other.logprobs.empty()) return;
    logprobs.insert(logprobs.end(), other.logprobs.begin(),
                    other.logprobs.begin() + count);
  }

  // Removes the first `count` tokens. REQUIRES: count <= tokens.size().
  void RemoveFirst(size_t count) {
    tokens.erase(tokens.begin(), tokens.begin() + count);
    top.erase(top.begin(), top.begin() + count * top_count);
    if (logprobs.empty()) return;
    logprobs.erase(logprobs.begin(), logprobs.begin() + count);
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
