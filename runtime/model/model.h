// What the engine needs of a model: one batched forward pass.

#ifndef RUNTIME_MODEL_MODEL_H_
#define RUNTIME_MODEL_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/kv_layout.h"
#include "cache/kv_storage.h"
#include "runtime/base/element_type.h"
#include "runtime/base/types.h"
#include "runtime/kernels/column_blocks.h"
#include "runtime/model/step_input.h"

namespace folio {

// Facts about a model that do not change.
struct ModelInfo {
  std::string name;          // What clients may put into `model`.
  std::string architecture;  // Its family's name, as config.json has it.
  int32_t vocab_size = 0;
  int32_t context_length = 0;  // The most tokens of one sequence.
  KvShape kv_shape;            // Its bytes_per_element are those of kv_type.
  ElementType kv_type = ElementType::kF32;
  ElementType weights_type = ElementType::kF32;
  // The most positions that a token sees, itself included; none: all.
  std::optional<int32_t> window;
  std::optional<TokenId> bos_token;
  std::vector<TokenId> eos_tokens;
  int64_t num_parameters = 0;
  int64_t weight_bytes = 0;  // As they are in memory, packed.
};

// Used by the engine thread only; the work inside a call is spread over the
// model's Executor.
//
// A row's results depend on the tokens of its own sequence alone, to the last
// bit: not on the other rows, the split into chunks, the page size or the
// number of workers.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;

  // Computes every row of `input`, writes K/V to the rows' slots, and keeps the
  // last hidden state of each row of input.logits_rows for Logits.
  // REQUIRES: input.tokens.size() <= the max_batch_tokens the model was made
  // for; storage has the layout of info().kv_shape.
  virtual void Forward(const StepInput& input, KvStorage& storage) = 0;

  // Logits of input.logits_rows[first .. first + count) of the last Forward.
  // In tiles, because all of them at once (every token of a prompt, for prompt
  // logprobs) could take more memory than the model.
  // The result is valid until the next call. REQUIRES: 0 < count <=
  // max_logits_rows the model was made for.
  virtual const ColumnBlocks& Logits(int32_t first,
                                     int32_t count) = 0;  // [count, vocab_size]
};

// What a model's scratch memory is sized by.
struct ModelLimits {
  int32_t max_batch_tokens = 0;
  int32_t max_logits_rows = 0;
  // The most page-table entries of a step follow from these. 0: not known, and
  // memory for them grows with the steps.
  int32_t max_sequences = 0;
  int32_t page_size = 0;
};

}  // namespace folio

#endif  // RUNTIME_MODEL_MODEL_H_
