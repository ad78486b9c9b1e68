#include "runtime/engine/logit_changes.h"

#include <limits>

#include "scheduler/request.h"

namespace folio {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

bool HasPenalties(const SamplingParams& sampling) {
  return sampling.repetition_penalty != 1 || sampling.presence_penalty != 0 ||
         sampling.frequency_penalty != 0;
}

bool IsTooShort(const Sequence& sequence) {
  return sequence.num_generated() < sequence.request->min_tokens;
}

// How often each token was generated, plus one in this bit where it was seen at
// all, so that those of the prompt are seen, too.
constexpr int32_t kSeen = int32_t{1} << 30;

void CountTokens(const Sequence& sequence, std::span<int32_t> counts) {
  const int32_t num_prompt_tokens = sequence.num_prompt_tokens();
  for (int32_t i = 0; i < sequence.num_tokens(); ++i) {
    int32_t& count = counts[sequence.tokens[i]];
    count |= kSeen;
    if (i >= num_prompt_tokens) ++count;
  }
}

float Penalised(float logit, const SamplingParams& sampling,
                int32_t num_generated) {
  logit = logit > 0 ? logit / sampling.repetition_penalty
                    : logit * sampling.repetition_penalty;
  if (num_generated == 0) return logit;
  return logit - sampling.presence_penalty -
         sampling.frequency_penalty * static_cast<float>(num_generated);
}

void ApplyPenalties(const Sequence& sequence, std::span<float> logits,
                    std::span<int32_t> counts) {
  CountTokens(sequence, counts);
  for (const TokenId token : sequence.tokens) {
    if (counts[token] == 0) continue;  // It has had its penalty.
    logits[token] = Penalised(logits[token], sequence.request->sampling,
                              counts[token] & ~kSeen);
    counts[token] = 0;
  }
}

}  // namespace

bool ChangesLogits(const Sequence& sequence) {
  const SamplingParams& sampling = sequence.request->sampling;
  return !sequence.masks.empty() || !sampling.logit_bias.empty() ||
         HasPenalties(sampling) || IsTooShort(sequence);
}

void ChangeLogits(const Sequence& sequence, std::span<float> logits,
                  std::span<int32_t> counts) {
  const SamplingParams& sampling = sequence.request->sampling;
  for (const auto& mask : sequence.masks) mask->Apply(logits);
  if (IsTooShort(sequence)) {
    for (const TokenId token : sequence.request->stop_tokens) {
      logits[token] = kNever;
    }
  }
  for (const auto& [token, bias] : sampling.logit_bias) logits[token] += bias;
  if (HasPenalties(sampling)) ApplyPenalties(sequence, logits, counts);
}

}  // namespace folio
