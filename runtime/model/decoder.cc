#include "runtime/model/decoder.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/kernels/activations.h"
#include "runtime/kernels/aligned_array.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/instruction_set.h"
#include "runtime/kernels/rotary.h"
#include "runtime/kernels/split_qkv.h"

namespace folio {
namespace {

class Decoder final : public Model {
 public:
  Decoder(std::string name, const DecoderConfig& config, DecoderWeights weights,
          int64_t num_parameters, const ModelTypes& types,
          const ModelLimits& limits, Executor* executor);

  const ModelInfo& info() const override { return info_; }
  void Forward(const StepInput& input, KvStorage& storage) override;
  const ColumnBlocks& Logits(int32_t first, int32_t count) override;

 private:
  void FindPages(const StepInput& input, KvStorage& storage);
  void Embed(const StepInput& input);
  void AttentionBlock(DecoderLayerWeights& layer, const PagedKv& kv,
                      int32_t rows);
  void FfnBlock(DecoderLayerWeights& layer, int32_t rows, const Linear* next);
  void Normalise(const NormWeights& norm, int32_t rows, Activations& out);
  void AddAndNormalise(const NormWeights& norm, int32_t rows);
  void KeepLogitsRows(std::span<const int32_t> logits_rows);

  PagedKv KvOfLayer(int32_t layer, const KvStorage& storage) const;

  const DecoderConfig config_;
  const AttentionShape shape_;
  const ModelInfo info_;
  const ModelLimits limits_;
  Executor* const executor_;
  DecoderWeights weights_;
  std::optional<Rotary> rotary_;
  PagedAttention attention_;

  // Activations of one step, with room for max_batch_tokens rows.
  AlignedArray<float> x_;    // [rows, hidden]: the residual stream
  Activations normed_;       // [rows, hidden]
  ColumnBlocks qkv_out_;     // [rows, qkv_size]
  AlignedArray<float> q_;    // [rows, num_heads, head_dim]
  Activations attended_;     // [rows, num_heads * head_dim]
  ColumnBlocks hidden_out_;  // [rows, hidden]
  ColumnBlocks up_out_;      // [rows, ffn], or [rows, 2 * ffn]
  Activations ffn_;          // [rows, ffn]

  // What Logits needs of the last Forward.
  Activations last_hidden_;  // [logits rows, hidden], normalised
  int32_t num_logits_rows_ = 0;
  ColumnBlocks logits_;  // [max_logits_rows, vocab]

  // The pages of one step as kernels take them. All keep their memory.
  std::vector<AttentionSequence> sequences_;
  std::vector<const std::byte*> pages_;
  std::vector<KvSlot> kv_slots_;  // [rows]
};

ModelInfo MakeInfo(std::string name, const DecoderConfig& config,
                   const DecoderWeights& weights, int64_t num_parameters,
                   const ModelTypes& types) {
  ModelInfo info;
  info.name = std::move(name);
  info.architecture = config.architecture;
  info.vocab_size = config.vocab_size;
  info.context_length = config.context_length;
  info.kv_shape = {.num_layers = config.num_layers,
                   .num_kv_heads = config.num_kv_heads,
                   .head_dim = config.head_dim,
                   .bytes_per_element = BytesOf(types.kv),
                   .scale_bytes = KvScaleBytesOf(types.kv)};
  info.kv_type = types.kv;
  info.weights_type = types.weights;
  info.window = config.window;
  info.bos_token = config.bos_token;
  info.eos_tokens = config.eos_tokens;
  info.num_parameters = num_parameters;
  info.weight_bytes = weights.bytes();
  return info;
}

// Of the rotary embedding, scaled.
std::vector<double> Frequencies(const DecoderConfig& config) {
  std::vector<double> frequencies =
      RopeFrequencies(config.head_dim, config.rope_theta, config.rope_scaling);
  for (size_t i = 0; i < config.rope_factors.size(); ++i) {
    frequencies[i] /= config.rope_factors[i];
  }
  return frequencies;
}

Decoder::Decoder(std::string name, const DecoderConfig& config,
                 DecoderWeights weights, int64_t num_parameters,
                 const ModelTypes& types, const ModelLimits& limits,
                 Executor* executor)
    : config_(config),
      shape_{config.num_heads, config.num_kv_heads, config.head_dim},
      info_(MakeInfo(std::move(name), config, weights, num_parameters, types)),
      limits_(limits),
      executor_(executor),
      weights_(std::move(weights)),
      attention_(shape_, config.window, limits.max_batch_tokens, executor),
      x_(size_t(limits.max_batch_tokens) * config.hidden_size),
      normed_(types.weights, limits.max_batch_tokens, config.hidden_size,
              executor->num_workers()),
      qkv_out_(weights_.layers[0].qkv.MakeOutput()),
      q_(size_t(limits.max_batch_tokens) * config.num_heads * config.head_dim),
      attended_(types.weights, limits.max_batch_tokens,
                config.num_heads * config.head_dim, executor->num_workers()),
      hidden_out_(weights_.layers[0].out.MakeOutput()),
      up_out_(weights_.layers[0].up.MakeOutput()),
      ffn_(types.weights, limits.max_batch_tokens, config.ffn_size,
           executor->num_workers()),
      // Logits may round its rows up past the last one.
      last_hidden_(types.weights,
                   limits.max_batch_tokens + limits.max_logits_rows,
                   config.hidden_size, executor->num_workers()),
      logits_(weights_.head.MakeOutput()) {
  logits_.KeepMaxima();
  if (config.positions == PositionKind::kRotary) {
    rotary_.emplace(Frequencies(config), config.context_length,
                    limits.max_batch_tokens);
  }
  sequences_.reserve(limits.max_batch_tokens);
  kv_slots_.reserve(limits.max_batch_tokens);
  if (limits.page_size > 0) {
    pages_.reserve(size_t(limits.max_sequences) *
                   (config.context_length / limits.page_size + 1));
  }
}

void Decoder::Forward(const StepInput& input, KvStorage& storage) {
  const int32_t rows = static_cast<int32_t>(input.tokens.size());
  CHECK_LE(rows, limits_.max_batch_tokens);
  num_logits_rows_ = 0;
  if (rows == 0) return;
  FindPages(input, storage);
  Embed(input);
  attention_.Plan(sequences_);
  Normalise(weights_.layers[0].attn_norm, rows, normed_);
  for (int32_t l = 0; l < config_.num_layers; ++l) {
    AttentionBlock(weights_.layers[l], KvOfLayer(l, storage), rows);
    const bool is_last = l + 1 == config_.num_layers;
    FfnBlock(weights_.layers[l], rows,
             is_last ? &weights_.head : &weights_.layers[l + 1].qkv);
    if (!is_last) {
      AddAndNormalise(weights_.layers[l + 1].attn_norm, rows);
    } else {
      AddColumnBlocks(hidden_out_, rows, x_.span(), *executor_);
    }
  }
  KeepLogitsRows(input.logits_rows);
}

void Decoder::FindPages(const StepInput& input, KvStorage& storage) {
  pages_.clear();
  for (const SequenceInput& sequence : input.sequences) {
    for (const PageId page : sequence.pages) {
      pages_.push_back(page == kNoPage ? nullptr : storage.PageData(page));
    }
  }
  sequences_.clear();
  size_t first_page = 0;
  for (const SequenceInput& sequence : input.sequences) {
    const std::span<const std::byte* const> pages =
        std::span(pages_).subspan(first_page, sequence.pages.size());
    first_page += pages.size();
    sequences_.push_back({.first_row = sequence.first_row,
                          .num_rows = sequence.num_rows,
                          .first_position = sequence.first_position,
                          .pages = pages});
  }
  kv_slots_.clear();
  for (const Slot slot : input.slots) {
    kv_slots_.push_back({storage.PageData(slot.page), slot.offset});
  }
}

void Decoder::Embed(const StepInput& input) {
  const size_t hidden = config_.hidden_size;
  for (size_t row = 0; row < input.tokens.size(); ++row) {
    const TokenId token = input.tokens[row];
    CHECK(token >= 0 && token < config_.vocab_size) << "token " << token;
    const std::span<float> x = x_.span().subspan(row * hidden, hidden);
    weights_.token_embedding.CopyRow(token, x);
    if (weights_.position_embedding.has_value()) {
      weights_.position_embedding->AddRow(input.positions[row], x);
    }
  }
  if (rotary_.has_value()) rotary_->SetPositions(input.positions, *executor_);
}

// normed_ is norm(x), and becomes that of x += out(attention(q, k, v)). K and V
// go to their pages.
void Decoder::AttentionBlock(DecoderLayerWeights& layer, const PagedKv& kv,
                             int32_t rows) {
  const HeadTransforms transforms{
      .q_norm = layer.q_norm,
      .k_norm = layer.k_norm,
      .norm_epsilon = static_cast<float>(config_.norm_epsilon),
      .rotary = rotary_.has_value() ? &*rotary_ : nullptr};
  layer.qkv.Forward(normed_, 0, rows, qkv_out_, &layer.out);
  SplitQkv(qkv_out_, rows, shape_, transforms, kv, kv_slots_, q_.span(),
           *executor_);
  attention_.Run(q_.span(), kv, attended_);
  layer.out.Forward(attended_, 0, rows, hidden_out_, &layer.up);
  AddAndNormalise(layer.ffn_norm, rows);
}

// hidden_out_ = down(activation(up(normed_))). `next` is the product after it.
void Decoder::FfnBlock(DecoderLayerWeights& layer, int32_t rows,
                       const Linear* next) {
  layer.up.Forward(normed_, 0, rows, up_out_, &layer.down);
  switch (config_.ffn) {
    case FfnKind::kGeluErf:
      GeluErf(up_out_, rows, ffn_, *executor_);
      break;
    case FfnKind::kGeluTanh:
      GeluTanh(up_out_, rows, ffn_, *executor_);
      break;
    case FfnKind::kSwiGlu:
      SwiGlu(up_out_, rows, ffn_, *executor_);
      break;
  }
  layer.down.Forward(ffn_, 0, rows, hidden_out_, next);
}

// x += hidden_out_; normed_ = norm(x).
void Decoder::AddAndNormalise(const NormWeights& norm, int32_t rows) {
  const float epsilon = static_cast<float>(config_.norm_epsilon);
  if (config_.norm == NormKind::kLayerNorm) {
    AddAndLayerNorm(hidden_out_, rows, x_.span(), norm.weight, norm.bias,
                    epsilon, normed_, *executor_);
  } else {
    AddAndRmsNorm(hidden_out_, rows, x_.span(), norm.weight, epsilon, normed_,
                  *executor_);
  }
}

void Decoder::Normalise(const NormWeights& norm, int32_t rows,
                        Activations& out) {
  const float epsilon = static_cast<float>(config_.norm_epsilon);
  if (config_.norm == NormKind::kLayerNorm) {
    LayerNorm(x_.span(), rows, norm.weight, norm.bias, epsilon, out,
              *executor_);
  } else {
    RmsNorm(x_.span(), rows, norm.weight, epsilon, out, *executor_);
  }
}

PagedKv Decoder::KvOfLayer(int32_t layer, const KvStorage& storage) const {
  const KvLayout& layout = storage.layout();
  const int64_t first_part =
      int64_t{layer} * config_.num_kv_heads * storage.part_stride();
  return {.type = info_.kv_type,
          .page_size = layout.page_size(),
          .key_offset = first_part + layout.KeyOffset(),
          .value_offset = first_part + layout.ValueOffset(),
          .head_stride = storage.part_stride(),
          .key_scale_offset = first_part + layout.KeyScaleOffset(),
          .value_scale_offset = first_part + layout.ValueScaleOffset()};
}

void Decoder::KeepLogitsRows(std::span<const int32_t> logits_rows) {
  const size_t hidden = config_.hidden_size;
  num_logits_rows_ = static_cast<int32_t>(logits_rows.size());
  // x_ is not needed any more, and rows ascend: they can move up in place.
  for (size_t i = 0; i < logits_rows.size(); ++i) {
    std::copy_n(x_.data() + logits_rows[i] * hidden, hidden,
                x_.data() + i * hidden);
  }
  Normalise(weights_.final_norm, num_logits_rows_, last_hidden_);
}

const ColumnBlocks& Decoder::Logits(int32_t first, int32_t count) {
  CHECK_GE(first, 0);
  CHECK_GT(count, 0);
  CHECK_LE(count, limits_.max_logits_rows);
  CHECK_LE(first + count, num_logits_rows_);
  weights_.head.Forward(last_hidden_, first, count, logits_);
  return logits_;
}

}  // namespace

std::unique_ptr<Model> MakeDecoder(
    std::string name, const DecoderConfig& config, const DecoderNames& names,
    WeightSource& source, const ModelTypes& types, const ModelLimits& limits,
    Executor* executor, const LoadProgress& progress) {
  CHECK(ValidateConfig(config).ok()) << ValidateConfig(config);
  CHECK_GE(limits.max_batch_tokens, 1);
  CHECK_GE(limits.max_logits_rows, 1);
  ObeyInstructionSetCap();
  DecoderWeights weights = LoadDecoderWeights(
      config, names, source, types.weights, limits, executor, progress);
  const int64_t parameters = NumParameters(ExpectedTensors(config, names));
  return std::make_unique<Decoder>(std::move(name), config, std::move(weights),
                                   parameters, types, limits, executor);
}

}  // namespace folio
