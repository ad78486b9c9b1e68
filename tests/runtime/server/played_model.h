// A model that says what the test wants, token by token.

#ifndef TESTS_RUNTIME_SERVER_PLAYED_MODEL_H_
#define TESTS_RUNTIME_SERVER_PLAYED_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/model/model.h"
#include "tests/support/scripted_model.h"

namespace folio {

// Tokens are bytes. Whatever the tokens are, the likeliest one at position p is
// byte p of a text: behind a prompt of one token, it generates the text from
// its second byte on; past its end, dots.
class PlayedModel final : public Model {
 public:
  // Looks at `text` in each step; it may change while no request is live.
  PlayedModel(const std::string* text, std::optional<TokenId> bos_token,
              int32_t context_length, const ModelLimits& limits)
      : text_(text),
        info_(ScriptedModel(context_length, limits).info()),
        logits_(limits.max_logits_rows, {0, info_.vocab_size}) {
    info_.bos_token = bos_token;
  }

  const ModelInfo& info() const override { return info_; }

  void Forward(const StepInput& input, KvStorage& /*storage*/) override {
    next_tokens_.clear();
    for (const int32_t row : input.logits_rows) {
      const size_t next = static_cast<size_t>(input.positions[row]) + 1;
      next_tokens_.push_back(
          next < text_->size() ? static_cast<uint8_t>((*text_)[next]) : '.');
    }
  }

  const ColumnBlocks& Logits(int32_t first, int32_t count) override {
    float* const data = logits_.block_data(0);
    std::fill_n(data, count * info_.vocab_size, 0.0f);
    for (int32_t row = 0; row < count; ++row) {
      data[row * info_.vocab_size + next_tokens_[first + row]] = 100.0f;
    }
    return logits_;
  }

 private:
  const std::string* const text_;
  ModelInfo info_;
  std::vector<TokenId> next_tokens_;  // For each row of logits.
  ColumnBlocks logits_;
};

}  // namespace folio

#endif  // TESTS_RUNTIME_SERVER_PLAYED_MODEL_H_
