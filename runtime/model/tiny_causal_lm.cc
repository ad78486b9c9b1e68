#include "runtime/model/tiny_causal_lm.h"

#include <glog/logging.h>

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/kernels/aligned_array.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/linear.h"
#include "runtime/kernels/parallel_rows.h"

namespace folio {
namespace {

class TinyCausalLm final : public Model {
 public:
  TinyCausalLm(std::string name, const TinyCausalLmConfig& config,
               TinyCausalLmWeights weights, const ModelLimits& limits,
               Executor* executor);

  const ModelInfo& info() const override { return info_; }
  void Forward(const StepInput& input, KvStorage& storage) override;
  const ColumnBlocks& Logits(int32_t first, int32_t count) override;

 private:
  struct Layer {
    WeightAndBias attn_norm;
    Linear qkv;
    Linear out;
    WeightAndBias ffn_norm;
    Linear ffn_in;
    Linear ffn_out;
  };

  Layer MakeLayer(TinyCausalLmLayerWeights weights) const;
  Linear MakeLinear(const std::vector<float>& weight,
                    const std::vector<float>& bias, int32_t in,
                    int32_t max_rows) const;

  void FindPages(const StepInput& input, const KvStorage& storage);
  void Embed(std::span<const TokenId> tokens);
  void Normalise(const WeightAndBias& norm, int32_t rows);
  void StoreKeysAndValues(const StepInput& input, int32_t layer,
                          KvStorage& storage);
  void Attend(int32_t layer, const KvLayout& layout);
  void KeepLogitsRows(std::span<const int32_t> logits_rows);

  const TinyCausalLmConfig config_;
  const ModelInfo info_;
  const ModelLimits limits_;
  Executor* const executor_;

  const std::vector<float> token_emb_;  // [vocab, hidden]
  std::vector<Layer> layers_;
  const WeightAndBias norm_;
  Linear lm_head_;
  PagedAttention attention_;

  // Activations of one step, with room for max_batch_tokens rows.
  AlignedArray<float> x_;         // [rows, hidden]: the residual stream
  AlignedArray<float> normed_;    // [rows, hidden]
  AlignedArray<float> q_;         // [rows, num_heads, head_dim]
  AlignedArray<float> attended_;  // [rows, num_heads, head_dim]
  AlignedArray<float> wide_;      // [rows, 4 * hidden]
  ColumnBlocks qkv_out_;          // [rows, 3 * hidden]
  ColumnBlocks hidden_out_;       // [rows, hidden]
  ColumnBlocks wide_out_;         // [rows, 4 * hidden]

  // What Logits needs of the last Forward.
  AlignedArray<float> last_hidden_;  // [logits rows, hidden], normalised
  int32_t num_logits_rows_ = 0;
  ColumnBlocks logits_;  // [max_logits_rows, vocab]

  // The sequences of one step as attention takes them. Both keep their memory;
  // the second grows to the most page-table entries that a step has had.
  std::vector<AttentionSequence> sequences_;
  std::vector<const std::byte*> pages_;
};

ModelInfo MakeInfo(std::string name, const TinyCausalLmConfig& config) {
  ModelInfo info;
  info.name = std::move(name);
  info.architecture = "TinyCausalLM";
  info.vocab_size = config.vocab_size;
  info.context_length = config.context_length;
  info.kv_shape = {.num_layers = config.num_layers,
                   .num_kv_heads = config.num_heads,
                   .head_dim = config.head_dim(),
                   .bytes_per_element = sizeof(float)};
  info.bos_token = config.bos_token;
  info.eos_tokens = config.eos_tokens;
  info.num_parameters = NumParameters(config);
  return info;
}

TinyCausalLm::TinyCausalLm(std::string name, const TinyCausalLmConfig& config,
                           TinyCausalLmWeights weights,
                           const ModelLimits& limits, Executor* executor)
    : config_(config),
      info_(MakeInfo(std::move(name), config)),
      limits_(limits),
      executor_(executor),
      token_emb_(std::move(weights.token_emb)),
      norm_(std::move(weights.norm)),
      lm_head_(MakeLinear(weights.lm_head, {}, config.hidden_size,
                          limits.max_logits_rows)),
      attention_({config.num_heads, config.num_heads, config.head_dim()},
                 limits.max_batch_tokens, executor),
      x_(size_t(limits.max_batch_tokens) * config.hidden_size),
      normed_(x_.size()),
      q_(x_.size()),
      attended_(x_.size()),
      wide_(4 * x_.size()),
      qkv_out_(limits.max_batch_tokens,
               ColumnBlocks::EvenCuts(3 * config.hidden_size,
                                      executor->num_workers())),
      hidden_out_(
          limits.max_batch_tokens,
          ColumnBlocks::EvenCuts(config.hidden_size, executor->num_workers())),
      wide_out_(limits.max_batch_tokens,
                ColumnBlocks::EvenCuts(4 * config.hidden_size,
                                       executor->num_workers())),
      // Logits may round its rows up past the last one.
      last_hidden_(size_t(limits.max_batch_tokens + limits.max_logits_rows) *
                   config.hidden_size),
      logits_(lm_head_.MakeOutput()) {
  sequences_.reserve(limits.max_batch_tokens);
  layers_.reserve(config.num_layers);
  for (TinyCausalLmLayerWeights& layer : weights.layers) {
    layers_.push_back(MakeLayer(std::move(layer)));
  }
}

Linear TinyCausalLm::MakeLinear(const std::vector<float>& weight,
                                const std::vector<float>& bias, int32_t in,
                                int32_t max_rows) const {
  LinearWeights weights;
  weights.in = in;
  weights.out = static_cast<int32_t>(weight.size() / in);
  weights.weight = weight;
  weights.bias = bias;
  return Linear(weights, max_rows, executor_);
}

TinyCausalLm::Layer TinyCausalLm::MakeLayer(
    TinyCausalLmLayerWeights weights) const {
  const int32_t hidden = config_.hidden_size;
  const auto make = [&](const WeightAndBias& tensors, int32_t in) {
    return MakeLinear(tensors.weight, tensors.bias, in,
                      limits_.max_batch_tokens);
  };
  return {.attn_norm = std::move(weights.attn_norm),
          .qkv = make(weights.qkv, hidden),
          .out = make(weights.out, hidden),
          .ffn_norm = std::move(weights.ffn_norm),
          .ffn_in = make(weights.ffn_in, hidden),
          .ffn_out = make(weights.ffn_out, 4 * hidden)};
}

void TinyCausalLm::Forward(const StepInput& input, KvStorage& storage) {
  const int32_t rows = static_cast<int32_t>(input.tokens.size());
  CHECK_LE(rows, limits_.max_batch_tokens);
  num_logits_rows_ = 0;
  if (rows == 0) return;
  FindPages(input, storage);
  Embed(input.tokens);
  for (int32_t l = 0; l < config_.num_layers; ++l) {
    Layer& layer = layers_[l];
    Normalise(layer.attn_norm, rows);
    layer.qkv.Forward(normed_.span(), rows, qkv_out_);
    StoreKeysAndValues(input, l, storage);
    Attend(l, storage.layout());
    layer.out.Forward(attended_.span(), rows, hidden_out_);
    AddColumnBlocks(hidden_out_, rows, x_.span(), *executor_);

    Normalise(layer.ffn_norm, rows);
    layer.ffn_in.Forward(normed_.span(), rows, wide_out_);
    GeluErf(wide_out_, rows, wide_.span(), *executor_);
    layer.ffn_out.Forward(wide_.span(), rows, hidden_out_);
    AddColumnBlocks(hidden_out_, rows, x_.span(), *executor_);
  }
  KeepLogitsRows(input.logits_rows);
}

void TinyCausalLm::FindPages(const StepInput& input, const KvStorage& storage) {
  pages_.clear();
  for (const SequenceInput& sequence : input.sequences) {
    for (const PageId page : sequence.pages) {
      pages_.push_back(storage.PageData(page));
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
}

void TinyCausalLm::Embed(std::span<const TokenId> tokens) {
  const size_t hidden = config_.hidden_size;
  for (size_t row = 0; row < tokens.size(); ++row) {
    CHECK_GE(tokens[row], 0);
    CHECK_LT(tokens[row], config_.vocab_size);
    std::copy_n(token_emb_.data() + tokens[row] * hidden, hidden,
                x_.data() + row * hidden);
  }
}

void TinyCausalLm::Normalise(const WeightAndBias& norm, int32_t rows) {
  LayerNorm(x_.span(), rows, norm.weight, norm.bias, normed_.span(),
            *executor_);
}

// Splits each row of qkv: q becomes dense, K and V go to the row's slot.
void TinyCausalLm::StoreKeysAndValues(const StepInput& input, int32_t layer,
                                      KvStorage& storage) {
  const int32_t hidden = config_.hidden_size;
  const int32_t head_dim = config_.head_dim();
  const KvLayout& layout = storage.layout();
  const auto store = [&](int32_t row, int32_t column, int64_t head_offset) {
    const Slot slot = input.slots[row];
    std::byte* head = storage.PageData(slot.page) + head_offset;
    float* place = reinterpret_cast<float*>(head) + slot.offset * head_dim;
    qkv_out_.CopyRow(row, column, {place, static_cast<size_t>(head_dim)});
  };
  ParallelRows(*executor_, static_cast<int32_t>(input.tokens.size()),
               [&](int32_t first, int32_t count) {
                 for (int32_t row = first; row < first + count; ++row) {
                   qkv_out_.CopyRow(
                       row, 0, q_.span().subspan(size_t(row) * hidden, hidden));
                   for (int32_t head = 0; head < config_.num_heads; ++head) {
                     const int32_t column = head * head_dim;
                     store(row, hidden + column, layout.KeyOffset(layer, head));
                     store(row, 2 * hidden + column,
                           layout.ValueOffset(layer, head));
                   }
                 }
               });
}

void TinyCausalLm::Attend(int32_t layer, const KvLayout& layout) {
  const int64_t first_head = layout.KeyOffset(layer, 0);
  const PagedKv kv{.page_size = layout.page_size(),
                   .key_offset = first_head,
                   .value_offset = layout.ValueOffset(layer, 0),
                   .head_stride = int64_t{layout.page_size()} *
                                  config_.head_dim() *
                                  layout.shape().bytes_per_element};
  attention_.Run(q_.span(), sequences_, kv, attended_.span());
}

void TinyCausalLm::KeepLogitsRows(std::span<const int32_t> logits_rows) {
  const size_t hidden = config_.hidden_size;
  num_logits_rows_ = static_cast<int32_t>(logits_rows.size());
  // x_ is not needed any more, and rows ascend: they can move up in place.
  for (size_t i = 0; i < logits_rows.size(); ++i) {
    std::copy_n(x_.data() + logits_rows[i] * hidden, hidden,
                x_.data() + i * hidden);
  }
  LayerNorm(x_.span(), num_logits_rows_, norm_.weight, norm_.bias,
            last_hidden_.span(), *executor_);
}

const ColumnBlocks& TinyCausalLm::Logits(int32_t first, int32_t count) {
  CHECK_GE(first, 0);
  CHECK_GT(count, 0);
  CHECK_LE(count, limits_.max_logits_rows);
  CHECK_LE(first + count, num_logits_rows_);
  lm_head_.Forward(
      last_hidden_.span().subspan(size_t(first) * config_.hidden_size), count,
      logits_);
  return logits_;
}

}  // namespace

std::unique_ptr<Model> MakeTinyCausalLm(std::string name,
                                        const TinyCausalLmConfig& config,
                                        TinyCausalLmWeights weights,
                                        const ModelLimits& limits,
                                        Executor* executor) {
  CHECK(ValidateConfig(config).ok()) << ValidateConfig(config);
  CHECK_GE(limits.max_batch_tokens, 1);
  CHECK_GE(limits.max_logits_rows, 1);
  CHECK_EQ(weights.layers.size(), size_t(config.num_layers));
  return std::make_unique<TinyCausalLm>(std::move(name), config,
                                        std::move(weights), limits, executor);
}

}  // namespace folio
