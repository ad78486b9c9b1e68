// What a decoder-only transformer is made of: everything but the weights.

#ifndef RUNTIME_MODEL_DECODER_CONFIG_H_
#define RUNTIME_MODEL_DECODER_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/types.h"
#include "runtime/kernels/rotary.h"

namespace folio {

enum class NormKind { kLayerNorm, kRmsNorm };

enum class PositionKind {
  kNone,
  kLearned,  // A row for each position is added to the token's.
  kRotary,   // Queries and keys are turned.
};

enum class FfnKind {
  kGeluErf,   // down(GELU(up(h)))
  kGeluTanh,  // The same with the tanh form of GELU.
  kSwiGlu,    // down(silu(gate(h)) * up(h))
};

// All families are this model, with x the residual stream:
//
//   x = token_embedding[token]  (+ position_embedding[position])
//   each layer:  h = norm(x)
//                q, k, v = Wq h, Wk h, Wv h   (q and k normalised by head, and
//                                              turned by position)
//                x += Wo attention(q, k, v)
//                x += ffn(norm(x))
//   logits = head(norm(x))
//
// and their files say which of the choices below are theirs.
struct DecoderConfig {
  std::string architecture;  // Its family's name in config.json.

  int32_t vocab_size = 0;
  int32_t context_length = 0;
  int32_t hidden_size = 0;
  int32_t num_layers = 0;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t ffn_size = 0;

  NormKind norm = NormKind::kRmsNorm;
  double norm_epsilon = 1e-5;
  bool qk_norm = false;  // An RmsNorm of each head of q and k.

  PositionKind positions = PositionKind::kRotary;
  double rope_theta = 10000;
  RopeScaling rope_scaling;
  // Divisors of the frequencies, [head_dim / 2], where a file lists them.
  std::vector<double> rope_factors;
  std::optional<int32_t> window;  // The most positions that a token sees.

  FfnKind ffn = FfnKind::kSwiGlu;
  bool qkv_bias = false;
  bool out_bias = false;
  bool ffn_bias = false;
  bool tied_head = false;  // The head is the token embedding.

  std::optional<TokenId> bos_token;
  std::vector<TokenId> eos_tokens;

  int32_t qkv_size() const { return (num_heads + 2 * num_kv_heads) * head_dim; }
};

// Fills in what follows from the rest where it is 0: as many KV heads as heads,
// heads that share the hidden size, an FFN of four times that.
void CompleteConfig(DecoderConfig& config);

// INVALID_ARGUMENT, saying what is wrong and what is allowed, unless every
// number makes sense: positive, below a generous bound (so that no product of
// two sizes overflows), KV heads a divisor of heads, special tokens in the
// vocabulary.
absl::Status ValidateConfig(const DecoderConfig& config);

}  // namespace folio

#endif  // RUNTIME_MODEL_DECODER_CONFIG_H_
