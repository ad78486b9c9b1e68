// TinyCausalLM: a small pre-norm transformer without positions.

#ifndef RUNTIME_MODEL_TINY_CAUSAL_LM_H_
#define RUNTIME_MODEL_TINY_CAUSAL_LM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "runtime/base/executor.h"
#include "runtime/base/types.h"
#include "runtime/model/model.h"

namespace folio {

// The model, with x the residual stream and every product `W x + b`:
//
//   x = token_emb[token]
//   each layer:  x += out(attention(qkv(LayerNorm(x))))
//                x += ffn.2(GELU(ffn.0(LayerNorm(x))))
//   logits = lm_head(LayerNorm(x)), without bias
//
// Rows of qkv are q, then k, then v, each num_heads heads of head_dim in order;
// scores are scaled by 1 / sqrt(head_dim); GELU is the one with erf.
struct TinyCausalLmConfig {
  int32_t vocab_size = 128;
  int32_t hidden_size = 64;
  int32_t num_heads = 4;
  int32_t num_layers = 2;
  int32_t context_length = 4096;
  std::optional<TokenId> bos_token;
  std::vector<TokenId> eos_tokens;

  int32_t head_dim() const { return hidden_size / num_heads; }
};

// INVALID_ARGUMENT, saying what is wrong and what is allowed, unless every
// number makes sense: positive, below a generous bound, num_heads a divisor of
// hidden_size, special tokens in the vocabulary.
absl::Status ValidateConfig(const TinyCausalLmConfig& config);

// A weight and its bias; lm_head's bias is empty.
struct WeightAndBias {
  std::vector<float> weight;
  std::vector<float> bias;
};

struct TinyCausalLmLayerWeights {
  WeightAndBias attn_norm;  // [hidden], [hidden]
  WeightAndBias qkv;        // [3 * hidden, hidden], [3 * hidden]
  WeightAndBias out;        // [hidden, hidden], [hidden]
  WeightAndBias ffn_norm;   // [hidden], [hidden]
  WeightAndBias ffn_in;     // [4 * hidden, hidden], [4 * hidden]
  WeightAndBias ffn_out;    // [hidden, 4 * hidden], [hidden]
};

struct TinyCausalLmWeights {
  std::vector<float> token_emb;  // [vocab, hidden]
  std::vector<TinyCausalLmLayerWeights> layers;
  WeightAndBias norm;          // [hidden], [hidden]
  std::vector<float> lm_head;  // [vocab, hidden]
};

// Calls visit for every tensor of the model, in the order and by the names of a
// checkpoint ("blocks.0.attn.qkv.weight"), and gives `weights` its layers.
void ForEachTensor(const TinyCausalLmConfig& config,
                   TinyCausalLmWeights& weights,
                   absl::FunctionRef<void(const std::string& name,
                                          const std::vector<int64_t>& shape,
                                          std::vector<float>& values)>
                       visit);

int64_t NumParameters(const TinyCausalLmConfig& config);

// Weights of about the size that keeps activations near 1; a function of config
// and seed alone, on every machine.
TinyCausalLmWeights RandomTinyCausalLmWeights(const TinyCausalLmConfig& config,
                                              uint64_t seed);

// `name` is what clients may ask for. REQUIRES: a valid config, weights of its
// shapes, limits of at least 1. The executor must outlive the model.
std::unique_ptr<Model> MakeTinyCausalLm(std::string name,
                                        const TinyCausalLmConfig& config,
                                        TinyCausalLmWeights weights,
                                        const ModelLimits& limits,
                                        Executor* executor);

}  // namespace folio

#endif  // RUNTIME_MODEL_TINY_CAUSAL_LM_H_
