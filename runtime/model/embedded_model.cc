#include "runtime/model/embedded_model.h"

#include <algorithm>

#include "runtime/model/tiny_causal_lm.h"

namespace folio {
namespace {

// Any other number would do; with it, the weights are fixed for good.
constexpr uint64_t kSeed = 20240229;

bool IsPrintable(TokenId token) { return token >= ' ' && token <= '~'; }

// A zero row of lm_head makes a logit of exactly 0. The 95 others are spread
// around 0 with a deviation of about 4, so that the greatest is always one of
// them: that none of them is positive has a chance of 2^-95.
void SilenceUnprintable(const TinyCausalLmConfig& config,
                        TinyCausalLmWeights& weights) {
  for (TokenId token = 0; token < config.vocab_size; ++token) {
    if (IsPrintable(token)) continue;
    std::fill_n(weights.lm_head.begin() + token * config.hidden_size,
                config.hidden_size, 0.0f);
  }
}

}  // namespace

std::unique_ptr<Model> MakeEmbeddedModel(const ModelLimits& limits,
                                         Executor* executor) {
  const TinyCausalLmConfig config;
  TinyCausalLmWeights weights = RandomTinyCausalLmWeights(config, kSeed);
  SilenceUnprintable(config, weights);
  return MakeTinyCausalLm(kEmbeddedModelName, config, std::move(weights),
                          limits, executor);
}

}  // namespace folio
