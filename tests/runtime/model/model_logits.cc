#include "tests/runtime/model/model_logits.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/philox.h"
#include "tests/runtime/model/step_runner.h"

namespace folio {

std::vector<TokenId> RandomTokens(uint64_t seed, int32_t count, int32_t vocab) {
  std::vector<TokenId> tokens(count);
  for (int32_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<TokenId>(PhiloxAt(seed, 0, i)[0] % vocab);
  }
  return tokens;
}

Logits RunAlone(Model& model, std::span<const TokenId> tokens, int32_t chunk,
                int32_t page_size) {
  StepRunner runner(model, page_size, 1, static_cast<int32_t>(tokens.size()));
  Logits logits;
  for (size_t i = 0; i < tokens.size(); i += chunk) {
    runner.Add(0,
               tokens.subspan(i, std::min<size_t>(chunk, tokens.size() - i)));
    for (auto& row : runner.Run()) logits.push_back(std::move(row));
  }
  return logits;
}

TokenId Likeliest(std::span<const float> logits) {
  return static_cast<TokenId>(std::ranges::max_element(logits) -
                              logits.begin());
}

double Logprob(std::span<const float> logits, TokenId token) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit});
  return logits[token] - std::log(sum);
}

}  // namespace folio
