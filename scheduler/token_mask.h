// What may be sampled next.

#ifndef SCHEDULER_TOKEN_MASK_H_
#define SCHEDULER_TOKEN_MASK_H_

#include <memory>
#include <span>
#include <vector>

#include "runtime/base/types.h"

namespace folio {

// Rules out tokens of one sequence, by what has been generated so far. Each
// sequence has its own, which Commit advances; it is neither reset nor advanced
// twice by a preemption. The engine thread advances, any one worker applies;
// never both at once.
class TokenMask {
 public:
  virtual ~TokenMask() = default;

  // Sets the logits of tokens that must not come next to -infinity. When none
  // is left by all masks together, the sequence ends.
  virtual void Apply(std::span<float> logits) const = 0;

  // `token` was sampled. It need not be one that Apply left.
  virtual void Advance(TokenId token) = 0;

  // One in the same state.
  virtual std::unique_ptr<TokenMask> Clone() const = 0;
};

// Leaves only `tokens`. Apply: O(vocabulary). REQUIRES: ascending, without
// duplicates, in the vocabulary.
std::unique_ptr<TokenMask> MakeAllowedTokensMask(std::vector<TokenId> tokens);

// Rules out the last token of each word whose other tokens were generated last.
// Apply: O(sum of the words' lengths). REQUIRES: no word is empty.
std::unique_ptr<TokenMask> MakeBadWordsMask(
    std::vector<std::vector<TokenId>> words);

}  // namespace folio

#endif  // SCHEDULER_TOKEN_MASK_H_
