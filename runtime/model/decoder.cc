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

// What the products of one layer write.
struct Outputs {
  Outputs(const DecoderLayerWeights& layer, int32_t max_rows)
      : qkv(layer.qkv.MakeOutput(max_rows)),
        hidden(layer.out.MakeOutput(max_rows)),
        up(layer.up.MakeOutput(max_rows)) {}

  ColumnBlocks qkv;     // [rows, qkv_size]
  ColumnBlocks hidden;  // [rows, hidden]
  ColumnBlocks up;      // [rows, ffn], or [rows, 2 * ffn]
};

// Some rows of a step, who computes them, and where what products write goes:
// its rows from 0 on are theirs.
struct Strip {
  Rows rows;
  Executor* executor;
  Outputs* y;
};

// The most rows of a strip that is one worker's: so few that what products
// write stays in its nearer caches, so many that reading weights costs little.
constexpr int32_t kStripRows = 64;

// Where there are not so many for each worker, all compute all rows together,
// each some columns of every product, so that weights are read once.
constexpr int32_t kLeastStripRows = 32;

class Decoder final : public Model {
 public:
  Decoder(std::string name, const DecoderConfig& config, DecoderWeights weights,
          int64_t num_parameters, const ModelTypes& types,
          const ModelLimits& limits, Executor* executor);

  const ModelInfo& info() const override { return info_; }
  void Forward(const StepInput& input, KvStorage& storage) override;
  const ColumnBlocks& Logits(int32_t first, int32_t count) override;

 private:
  template <typename Body>
  void ForEachStrip(int32_t rows, const Body& body);
  void FindPages(const StepInput& input, KvStorage& storage);
  void Embed(const StepInput& input);
  void BeforeAttention(int32_t layer, const PagedKv& kv, const Strip& strip);
  void AfterAttention(int32_t layer, const Strip& strip);
  void Activate(const Strip& strip);
  void Normalise(const NormWeights& norm, Rows rows, Activations& out,
                 Executor& executor);
  void AddAndNormalise(const NormWeights& norm, const Strip& strip);
  void KeepLogitsRows(const StepInput& input);

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
  AlignedArray<float> x_;                 // [rows, hidden]: the residual stream
  Activations normed_;                    // [rows, hidden]
  AlignedArray<float> q_;                 // [rows, num_heads, head_dim]
  Activations attended_;                  // [rows, num_heads * head_dim]
  Activations ffn_;                       // [rows, ffn]
  Outputs shared_outputs_;                // Of rows that all compute.
  std::vector<Outputs> worker_outputs_;   // Of each worker's strip.
  std::vector<SerialExecutor> one_each_;  // Each worker, alone.

  // What Logits needs of the last Forward.
  Activations last_hidden_;  // [logits rows, hidden], normalised
  int32_t num_logits_rows_ = 0;
  ColumnBlocks logits_;  // [max_logits_rows, vocab]

  // The pages of one step as kernels take them. All keep their memory.
  std::vector<AttentionSequence> sequences_;
  std::vector<AttentionSequence> kept_sequences_;  // Of rows with logits.
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
      q_(size_t(limits.max_batch_tokens) * config.num_heads * config.head_dim),
      attended_(types.weights, limits.max_batch_tokens,
                config.num_heads * config.head_dim, executor->num_workers()),
      ffn_(types.weights, limits.max_batch_tokens, config.ffn_size,
           executor->num_workers()),
      shared_outputs_(weights_.layers[0],
                      kLeastStripRows * executor->num_workers()),
      last_hidden_(types.weights, limits.max_batch_tokens, config.hidden_size,
                   executor->num_workers()),
      logits_(weights_.head.MakeOutput(limits.max_logits_rows)) {
  logits_.KeepMaxima();
  for (int worker = 0; worker < executor->num_workers(); ++worker) {
    worker_outputs_.emplace_back(weights_.layers[0], kStripRows);
    one_each_.emplace_back(worker);
  }
  if (config.positions == PositionKind::kRotary) {
    rotary_.emplace(Frequencies(config), config.context_length,
                    limits.max_batch_tokens);
  }
  sequences_.reserve(limits.max_batch_tokens);
  kept_sequences_.reserve(limits.max_batch_tokens);
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
  const int32_t last = config_.num_layers - 1;
  for (int32_t l = 0; l <= last; ++l) {
    const PagedKv kv = KvOfLayer(l, storage);
    ForEachStrip(rows, [&](const Strip& strip) {
      if (l == 0) {
        Normalise(weights_.layers[0].attn_norm, strip.rows, normed_,
                  *strip.executor);
      } else {
        AfterAttention(l - 1, strip);
      }
      BeforeAttention(l, kv, strip);
    });
    if (l == last) KeepLogitsRows(input);
    if (l == last && num_logits_rows_ == 0) return;
    attention_.Attend(q_.span(), kv);
  }
  ForEachStrip(num_logits_rows_,
               [&](const Strip& strip) { AfterAttention(last, strip); });
  Normalise(weights_.final_norm, {0, num_logits_rows_}, last_hidden_,
            *executor_);
}

// Calls body(strip) for strips that cover all rows. Between one attention and
// the next, rows need nothing of each other: a worker takes its strips from the
// one to the other, and waits for nobody.
template <typename Body>
void Decoder::ForEachStrip(int32_t rows, const Body& body) {
  const int num_workers = executor_->num_workers();
  if (rows < kLeastStripRows * num_workers) {
    body(Strip{{0, rows}, executor_, &shared_outputs_});
    return;
  }
  const int32_t least = (rows + kStripRows - 1) / kStripRows;
  const int num_strips = (least + num_workers - 1) / num_workers * num_workers;
  const auto begin = [&](int64_t strip) {
    return static_cast<int32_t>(rows * strip / num_strips);
  };
  executor_->ParallelFor(num_strips, [&](int task, int worker) {
    const int32_t first = begin(task);
    body(Strip{{first, begin(task + 1) - first},
               &one_each_[worker],
               &worker_outputs_[worker]});
  });
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

// From normed_ = norm(x) to q, k and v, of which the last two go to their
// pages.
void Decoder::BeforeAttention(int32_t layer, const PagedKv& kv,
                              const Strip& strip) {
  DecoderLayerWeights& weights = weights_.layers[layer];
  const HeadTransforms transforms{
      .q_norm = weights.q_norm,
      .k_norm = weights.k_norm,
      .norm_epsilon = static_cast<float>(config_.norm_epsilon),
      .rotary = rotary_.has_value() ? &*rotary_ : nullptr};
  weights.qkv.Forward(normed_, strip.rows, strip.y->qkv, *strip.executor,
                      &weights.out);
  SplitQkv(strip.y->qkv, strip.rows, shape_, transforms, kv, kv_slots_,
           q_.span(), *strip.executor);
}

// x += out(attention); x += down(activation(up(norm(x)))); normed_ = norm(x),
// as what follows needs it.
void Decoder::AfterAttention(int32_t layer, const Strip& strip) {
  DecoderLayerWeights& weights = weights_.layers[layer];
  const bool is_last = layer + 1 == config_.num_layers;
  attention_.Finish(strip.rows, attended_, *strip.executor);
  weights.out.Forward(attended_, strip.rows, strip.y->hidden, *strip.executor,
                      &weights.up);
  AddAndNormalise(weights.ffn_norm, strip);
  weights.up.Forward(normed_, strip.rows, strip.y->up, *strip.executor,
                     &weights.down);
  Activate(strip);
  weights.down.Forward(
      ffn_, strip.rows, strip.y->hidden, *strip.executor,
      is_last ? &weights_.head : &weights_.layers[layer + 1].qkv);
  if (!is_last) {
    AddAndNormalise(weights_.layers[layer + 1].attn_norm, strip);
  } else {
    AddColumnBlocks(strip.y->hidden, strip.rows, x_.span(), *strip.executor);
  }
}

void Decoder::Activate(const Strip& strip) {
  switch (config_.ffn) {
    case FfnKind::kGeluErf:
      GeluErf(strip.y->up, strip.rows, ffn_, *strip.executor);
      break;
    case FfnKind::kGeluTanh:
      GeluTanh(strip.y->up, strip.rows, ffn_, *strip.executor);
      break;
    case FfnKind::kSwiGlu:
      SwiGlu(strip.y->up, strip.rows, ffn_, *strip.executor);
      break;
  }
}

// x += y's hidden; normed_ = norm(x).
void Decoder::AddAndNormalise(const NormWeights& norm, const Strip& strip) {
  const float epsilon = static_cast<float>(config_.norm_epsilon);
  if (config_.norm == NormKind::kLayerNorm) {
    AddAndLayerNorm(strip.y->hidden, strip.rows, x_.span(), norm.weight,
                    norm.bias, epsilon, normed_, *strip.executor);
  } else {
    AddAndRmsNorm(strip.y->hidden, strip.rows, x_.span(), norm.weight, epsilon,
                  normed_, *strip.executor);
  }
}

void Decoder::Normalise(const NormWeights& norm, Rows rows, Activations& out,
                        Executor& executor) {
  const float epsilon = static_cast<float>(config_.norm_epsilon);
  if (config_.norm == NormKind::kLayerNorm) {
    LayerNorm(x_.span(), rows, norm.weight, norm.bias, epsilon, out, executor);
  } else {
    RmsNorm(x_.span(), rows, norm.weight, epsilon, out, executor);
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

// Of the last layer all rows have K and V, which is all that rows without
// logits are still needed for: from here on a step has only the others, which
// move up. (They ascend.)
void Decoder::KeepLogitsRows(const StepInput& input) {
  const std::span<const int32_t> kept = input.logits_rows;
  const size_t hidden = config_.hidden_size;
  const size_t q_size = size_t(config_.num_heads) * config_.head_dim;
  num_logits_rows_ = static_cast<int32_t>(kept.size());
  if (kept.size() == input.tokens.size()) return;
  for (size_t i = 0; i < kept.size(); ++i) {
    std::copy_n(x_.data() + kept[i] * hidden, hidden, x_.data() + i * hidden);
    std::copy_n(q_.data() + kept[i] * q_size, q_size, q_.data() + i * q_size);
  }
  kept_sequences_.clear();
  int32_t first = 0;
  for (const AttentionSequence& sequence : sequences_) {
    const int32_t end = sequence.first_row + sequence.num_rows;
    while (first < num_logits_rows_ && kept[first] < end) {
      int32_t next = first + 1;  // Of what does not follow in the sequence.
      while (next < num_logits_rows_ && kept[next] == kept[next - 1] + 1 &&
             kept[next] < end) {
        ++next;
      }
      kept_sequences_.push_back(
          {.first_row = first,
           .num_rows = next - first,
           .first_position =
               sequence.first_position + kept[first] - sequence.first_row,
           .pages = sequence.pages});
      first = next;
    }
  }
  attention_.Plan(kept_sequences_);
}

const ColumnBlocks& Decoder::Logits(int32_t first, int32_t count) {
  CHECK_GE(first, 0);
  CHECK_GT(count, 0);
  CHECK_LE(count, limits_.max_logits_rows);
  CHECK_LE(first + count, num_logits_rows_);
  weights_.head.Forward(last_hidden_, {first, count}, logits_, *executor_);
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
      config, names, source, types.weights, executor, progress);
  const int64_t parameters = NumParameters(ExpectedTensors(config, names));
  return std::make_unique<Decoder>(std::move(name), config, std::move(weights),
                                   parameters, types, limits, executor);
}

}  // namespace folio
