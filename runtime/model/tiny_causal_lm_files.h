// Reads a TinyCausalLM in the Hugging Face layout.

#ifndef RUNTIME_MODEL_TINY_CAUSAL_LM_FILES_H_
#define RUNTIME_MODEL_TINY_CAUSAL_LM_FILES_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/model/tiny_causal_lm.h"

namespace folio {

// Keys vocab_size, hidden_size, num_heads, num_layers are required;
// context_length, bos_token_id and eos_token_id (a number or a list) are not.
// The result is valid. INVALID_ARGUMENT names `path`, key, what was found and
// what is expected.
absl::StatusOr<TinyCausalLmConfig> ParseTinyCausalLmConfig(
    const nlohmann::json& config, const std::string& path);

// Reads a safetensors file that must hold exactly the tensors of `config`.
// INVALID_ARGUMENT names file and tensor, with the shapes found and expected;
// nothing is allocated that the file's own size does not account for.
absl::StatusOr<TinyCausalLmWeights> ReadTinyCausalLmWeights(
    const TinyCausalLmConfig& config, const std::string& path);

}  // namespace folio

#endif  // RUNTIME_MODEL_TINY_CAUSAL_LM_FILES_H_
