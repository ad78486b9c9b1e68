// Logits as a request's parameters change them.

#ifndef RUNTIME_ENGINE_LOGIT_CHANGES_H_
#define RUNTIME_ENGINE_LOGIT_CHANGES_H_

#include <cstdint>
#include <span>

#include "scheduler/sequence.h"

namespace folio {

// Whether ChangeLogits would do anything; false for most requests, which are
// then sampled from the model's logits in place.
bool ChangesLogits(const Sequence& sequence);

// Changes `logits` [vocabulary] of the token after the last one: masks and
// min_tokens, logit_bias, penalties, as SamplingParams has them. Depends on
// them and on the sequence's tokens alone, so that a recomputed sequence is
// changed as it was. Tokens that must not come have -infinity then.
// `counts` [vocabulary] is scratch memory: all 0 before and after.
// Time: O(tokens of the sequence), for penalties, + that of its masks.
void ChangeLogits(const Sequence& sequence, std::span<float> logits,
                  std::span<int32_t> counts);

}  // namespace folio

#endif  // RUNTIME_ENGINE_LOGIT_CHANGES_H_
