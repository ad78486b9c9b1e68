#include "runtime/model/decoder_config.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/kernels/activations.h"
#include "runtime/kernels/split_qkv.h"

namespace folio {
namespace {

absl::Status CheckRange(const char* what, int64_t value, int64_t least,
                        int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " is ", value, "; it must be from ", least, " to ", most));
}

absl::Status CheckPositive(const char* what, double value) {
  if (std::isfinite(value) && value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", value, "; it must be a positive number"));
}

absl::Status CheckSizes(const DecoderConfig& c) {
  // Far above any real model.
  FOLIO_RETURN_IF_ERROR(
      CheckRange("vocabulary size", c.vocab_size, 1, 1 << 22));
  FOLIO_RETURN_IF_ERROR(
      CheckRange("context length", c.context_length, 2, 1 << 24));
  FOLIO_RETURN_IF_ERROR(CheckRange("hidden size", c.hidden_size, 1, 1 << 16));
  FOLIO_RETURN_IF_ERROR(CheckRange("number of layers", c.num_layers, 1, 1024));
  FOLIO_RETURN_IF_ERROR(CheckRange("number of heads", c.num_heads, 1, 1024));
  FOLIO_RETURN_IF_ERROR(
      CheckRange("number of KV heads", c.num_kv_heads, 1, c.num_heads));
  if (c.head_dim == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "hidden size is ", c.hidden_size, ", which the number of heads, ",
        c.num_heads, ", does not divide; heads have equal sizes"));
  }
  FOLIO_RETURN_IF_ERROR(CheckRange("head size", c.head_dim, 1, kMaxHeadDim));
  FOLIO_RETURN_IF_ERROR(
      CheckRange("FFN size", c.ffn_size, 1, Activations::kMaxInt8Cols));
  if (c.num_heads % c.num_kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "number of KV heads is ", c.num_kv_heads,
        ", which does not divide the number of heads, ", c.num_heads));
  }
  return absl::OkStatus();
}

absl::Status CheckPositions(const DecoderConfig& c) {
  if (c.window.has_value()) {
    FOLIO_RETURN_IF_ERROR(CheckRange("sliding window", *c.window, 1, 1 << 24));
  }
  if (c.positions != PositionKind::kRotary) return absl::OkStatus();
  if (c.head_dim % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("head size is ", c.head_dim,
                     "; rotary position embeddings need an even one"));
  }
  FOLIO_RETURN_IF_ERROR(CheckPositive("rope theta", c.rope_theta));
  FOLIO_RETURN_IF_ERROR(
      CheckPositive("rope scaling factor", c.rope_scaling.factor));
  if (c.rope_scaling.kind == RopeScaling::Kind::kLlama3) {
    const RopeScaling& s = c.rope_scaling;
    FOLIO_RETURN_IF_ERROR(
        CheckPositive("rope scaling low_freq_factor", s.low_freq_factor));
    FOLIO_RETURN_IF_ERROR(
        CheckPositive("rope scaling original context", s.original_context));
    if (!(s.high_freq_factor > s.low_freq_factor)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "rope scaling high_freq_factor is ", s.high_freq_factor,
          "; it must be above low_freq_factor, ", s.low_freq_factor));
    }
  }
  if (!c.rope_factors.empty()) {
    FOLIO_RETURN_IF_ERROR(CheckRange(
        "number of rope factors", static_cast<int64_t>(c.rope_factors.size()),
        c.head_dim / 2, c.head_dim / 2));
  }
  for (const double factor : c.rope_factors) {
    FOLIO_RETURN_IF_ERROR(CheckPositive("rope factor", factor));
  }
  return absl::OkStatus();
}

absl::Status CheckTokens(const DecoderConfig& c) {
  const int64_t last = c.vocab_size - 1;
  if (c.bos_token.has_value()) {
    FOLIO_RETURN_IF_ERROR(CheckRange("BOS token", *c.bos_token, 0, last));
  }
  for (const TokenId token : c.eos_tokens) {
    FOLIO_RETURN_IF_ERROR(CheckRange("EOS token", token, 0, last));
  }
  return absl::OkStatus();
}

}  // namespace

void CompleteConfig(DecoderConfig& config) {
  if (config.num_kv_heads == 0) config.num_kv_heads = config.num_heads;
  if (config.ffn_size == 0 && config.hidden_size > 0 &&
      config.hidden_size < (1 << 28)) {
    config.ffn_size = 4 * config.hidden_size;
  }
  if (config.head_dim == 0 && config.num_heads > 0 &&
      config.hidden_size % config.num_heads == 0) {
    config.head_dim = config.hidden_size / config.num_heads;
  }
}

absl::Status ValidateConfig(const DecoderConfig& config) {
  FOLIO_RETURN_IF_ERROR(CheckSizes(config));
  FOLIO_RETURN_IF_ERROR(CheckPositive("norm epsilon", config.norm_epsilon));
  FOLIO_RETURN_IF_ERROR(CheckPositions(config));
  return CheckTokens(config);
}

}  // namespace folio
