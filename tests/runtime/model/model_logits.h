// All logits of a sequence, and what comes of them.

#ifndef TESTS_RUNTIME_MODEL_MODEL_LOGITS_H_
#define TESTS_RUNTIME_MODEL_MODEL_LOGITS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/types.h"
#include "runtime/model/model.h"

namespace folio {

using Logits = std::vector<std::vector<float>>;  // [rows, vocab]

std::vector<TokenId> RandomTokens(uint64_t seed, int32_t count, int32_t vocab);

// All tokens of one sequence in chunks of `chunk`. REQUIRES: the model was made
// for that many rows in a batch.
Logits RunAlone(Model& model, std::span<const TokenId> tokens, int32_t chunk,
                int32_t page_size);

TokenId Likeliest(std::span<const float> logits);

// The logprob of `token`.
double Logprob(std::span<const float> logits, TokenId token);

}  // namespace folio

#endif  // TESTS_RUNTIME_MODEL_MODEL_LOGITS_H_
