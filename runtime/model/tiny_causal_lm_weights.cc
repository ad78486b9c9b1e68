// The configuration and the tensors of TinyCausalLM.

#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/tiny_causal_lm.h"

namespace folio {
namespace {

using Shape = std::vector<int64_t>;

absl::Status CheckRange(const char* what, int64_t value, int64_t least,
                        int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " is ", value, "; it must be from ", least, " to ", most, "."));
}

int64_t NumElements(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t n : shape) elements *= n;
  return elements;
}

// The centre and half width of a tensor's uniform distribution.
struct Spread {
  float centre;
  float half_width;
};

Spread SpreadOf(const std::string& name, const Shape& shape) {
  const float root3 = 1.7320508f;  // Half the width of variance 1.
  const bool is_matrix = shape.size() == 2;
  if (name == "token_emb.weight") return {0, root3};
  // Logits of variance 16: sampled text is neither noise nor always the same.
  const float gain = name == "lm_head.weight" ? 4.0f : 1.0f;
  if (is_matrix) {
    return {0, gain * root3 / std::sqrt(static_cast<float>(shape[1]))};
  }
  if (absl::EndsWith(name, "norm.weight")) return {1, 0.25f};
  return {0, 0.1f};
}

}  // namespace

absl::Status ValidateConfig(const TinyCausalLmConfig& config) {
  // Far above any real model, and low enough that no product of two overflows.
  FOLIO_RETURN_IF_ERROR(
      CheckRange("vocab_size", config.vocab_size, 1, 1 << 22));
  FOLIO_RETURN_IF_ERROR(
      CheckRange("hidden_size", config.hidden_size, 1, 1 << 16));
  FOLIO_RETURN_IF_ERROR(
      CheckRange("num_heads", config.num_heads, 1, config.hidden_size));
  FOLIO_RETURN_IF_ERROR(CheckRange("num_layers", config.num_layers, 1, 1024));
  FOLIO_RETURN_IF_ERROR(
      CheckRange("context_length", config.context_length, 2, 1 << 20));
  if (config.hidden_size % config.num_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "hidden_size is ", config.hidden_size, ", which num_heads, ",
        config.num_heads, ", does not divide; heads have equal widths."));
  }
  const int64_t last = config.vocab_size - 1;
  if (config.bos_token.has_value()) {
    FOLIO_RETURN_IF_ERROR(
        CheckRange("bos_token_id", *config.bos_token, 0, last));
  }
  for (const TokenId token : config.eos_tokens) {
    FOLIO_RETURN_IF_ERROR(CheckRange("eos_token_id", token, 0, last));
  }
  return absl::OkStatus();
}

void ForEachTensor(
    const TinyCausalLmConfig& config, TinyCausalLmWeights& weights,
    absl::FunctionRef<void(const std::string& name, const Shape& shape,
                           std::vector<float>& values)>
        visit) {
  const int64_t hidden = config.hidden_size;
  const auto visit_both = [&](const std::string& name, const Shape& shape,
                              WeightAndBias& tensors) {
    visit(absl::StrCat(name, ".weight"), shape, tensors.weight);
    visit(absl::StrCat(name, ".bias"), {shape[0]}, tensors.bias);
  };
  weights.layers.resize(config.num_layers);
  visit("token_emb.weight", {config.vocab_size, hidden}, weights.token_emb);
  for (int32_t l = 0; l < config.num_layers; ++l) {
    const std::string block = absl::StrCat("blocks.", l, ".");
    TinyCausalLmLayerWeights& layer = weights.layers[l];
    visit_both(block + "attn_norm", {hidden}, layer.attn_norm);
    visit_both(block + "attn.qkv", {3 * hidden, hidden}, layer.qkv);
    visit_both(block + "attn.out", {hidden, hidden}, layer.out);
    visit_both(block + "ffn_norm", {hidden}, layer.ffn_norm);
    visit_both(block + "ffn.0", {4 * hidden, hidden}, layer.ffn_in);
    visit_both(block + "ffn.2", {hidden, 4 * hidden}, layer.ffn_out);
  }
  visit_both("norm", {hidden}, weights.norm);
  visit("lm_head.weight", {config.vocab_size, hidden}, weights.lm_head);
}

int64_t NumParameters(const TinyCausalLmConfig& config) {
  TinyCausalLmWeights empty;
  int64_t parameters = 0;
  ForEachTensor(config, empty,
                [&](const std::string&, const Shape& shape,
                    std::vector<float>&) { parameters += NumElements(shape); });
  return parameters;
}

TinyCausalLmWeights RandomTinyCausalLmWeights(const TinyCausalLmConfig& config,
                                              uint64_t seed) {
  TinyCausalLmWeights weights;
  uint64_t tensor = 0;
  ForEachTensor(config, weights,
                [&](const std::string& name, const Shape& shape,
                    std::vector<float>& values) {
                  const Spread spread = SpreadOf(name, shape);
                  values.resize(NumElements(shape));
                  PhiloxBlock block{};
                  for (size_t i = 0; i < values.size(); ++i) {
                    if (i % 4 == 0) block = PhiloxAt(seed, tensor, i / 4);
                    const float uniform =
                        static_cast<float>(block[i % 4] >> 8) * 0x1p-23f - 1.0f;
                    values[i] = spread.centre + spread.half_width * uniform;
                  }
                  ++tensor;
                });
  return weights;
}

}  // namespace folio
