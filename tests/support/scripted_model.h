// A model whose every output can be predicted without it.

#ifndef TESTS_SUPPORT_SCRIPTED_MODEL_H_
#define TESTS_SUPPORT_SCRIPTED_MODEL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/kv_storage.h"
#include "runtime/base/types.h"
#include "runtime/kernels/column_blocks.h"
#include "runtime/model/model.h"
#include "runtime/model/step_input.h"

namespace folio {

// Tokens are bytes. The next token is a plain function (NextToken) of all
// tokens so far; but the model does not look at the tokens it is given again:
// it stores each one as its K, and its position as its V, and reads the whole
// sequence back through the page table. So a wrong slot, a stale page or a
// missed copy changes the output, or fails a CHECK on a position.
class ScriptedModel final : public Model {
 public:
  static constexpr int32_t kVocabSize = 256;
  static constexpr TokenId kEos = 7;
  // After this token, which NextToken never gives, logits are not numbers.
  static constexpr TokenId kPoison = 255;

  // The truth. REQUIRES: !tokens.empty().
  static TokenId NextToken(std::span<const TokenId> tokens);

  // With a window, the next token is that function of the last `window` tokens,
  // and no other is read back. Layers above the first do nothing, but make
  // pages as large as those of a model in earnest: 8 bytes a token each.
  ScriptedModel(int32_t context_length, const ModelLimits& limits,
                std::optional<int32_t> window = std::nullopt,
                int32_t num_layers = 1);

  const ModelInfo& info() const override { return info_; }
  void Forward(const StepInput& input, KvStorage& storage) override;
  const ColumnBlocks& Logits(int32_t first, int32_t count) override;

 private:
  void ReadBack(const StepInput& input, const SequenceInput& sequence,
                const KvStorage& storage);

  ModelInfo info_;
  ModelLimits limits_;
  std::vector<TokenId> sequence_tokens_;  // As read back.
  std::vector<TokenId> next_tokens_;      // For each logits row; kPoison: NaN.
  ColumnBlocks logits_;
};

}  // namespace folio

#endif  // TESTS_SUPPORT_SCRIPTED_MODEL_H_
