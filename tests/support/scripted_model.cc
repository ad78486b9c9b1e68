#include "tests/support/scripted_model.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace folio {
namespace {

// So far above the others that softmax leaves it all the probability.
constexpr float kChosenLogit = 100.0f;

// Stands for tokens that have left the window.
constexpr TokenId kUnseen = -1;

float* Element(KvStorage& storage, const Slot& slot, int64_t offset) {
  return reinterpret_cast<float*>(storage.PageData(slot.page) + offset) +
         slot.offset;
}

float Read(const KvStorage& storage, PageId page, int32_t offset_in_page,
           int64_t array_offset) {
  float value;
  std::memcpy(
      &value,
      storage.PageData(page) + array_offset + offset_in_page * sizeof(float),
      sizeof(float));
  return value;
}

}  // namespace

TokenId ScriptedModel::NextToken(std::span<const TokenId> tokens) {
  uint32_t hash = 2166136261u;  // FNV-1a.
  for (TokenId token : tokens) {
    hash = (hash ^ static_cast<uint32_t>(token)) * 16777619u;
  }
  return static_cast<TokenId>((hash >> 8) % kPoison);
}

ScriptedModel::ScriptedModel(int32_t context_length, const ModelLimits& limits,
                             std::optional<int32_t> window, int32_t num_layers)
    : info_({.name = "scripted",
             .architecture = "Scripted",
             .vocab_size = kVocabSize,
             .context_length = context_length,
             .kv_shape = {.num_layers = num_layers,
                          .num_kv_heads = 1,
                          .head_dim = 1,
                          .bytes_per_element = sizeof(float)},
             .window = window,
             .bos_token = std::nullopt,
             .eos_tokens = {kEos},
             .num_parameters = 0}),
      limits_(limits),
      logits_(limits.max_logits_rows, {0, kVocabSize}) {}

void ScriptedModel::Forward(const StepInput& input, KvStorage& storage) {
  CHECK_LE(input.tokens.size(), static_cast<size_t>(limits_.max_batch_tokens));
  CHECK_EQ(input.tokens.size(), input.positions.size());
  CHECK_EQ(input.tokens.size(), input.slots.size());
  const KvLayout& layout = storage.layout();
  for (size_t row = 0; row < input.tokens.size(); ++row) {
    *Element(storage, input.slots[row], layout.KeyOffset()) =
        static_cast<float>(input.tokens[row]);
    *Element(storage, input.slots[row], layout.ValueOffset()) =
        static_cast<float>(input.positions[row]);
  }
  next_tokens_.clear();
  for (const SequenceInput& sequence : input.sequences) {
    ReadBack(input, sequence, storage);
  }
  CHECK_EQ(next_tokens_.size(), input.logits_rows.size());
}

void ScriptedModel::ReadBack(const StepInput& input,
                             const SequenceInput& sequence,
                             const KvStorage& storage) {
  const KvLayout& layout = storage.layout();
  const int32_t num_tokens = sequence.first_position + sequence.num_rows;
  const int32_t window = info_.window.value_or(num_tokens);
  const int32_t first_seen = std::max(0, sequence.first_position - window + 1);
  sequence_tokens_.assign(first_seen, kUnseen);
  for (int32_t position = first_seen; position < num_tokens; ++position) {
    const PageId page = sequence.pages[position / layout.page_size()];
    const int32_t offset = position % layout.page_size();
    const float stored_position =
        Read(storage, page, offset, layout.ValueOffset());
    CHECK_EQ(stored_position, position) << "another token's V stands here";
    sequence_tokens_.push_back(
        static_cast<TokenId>(Read(storage, page, offset, layout.KeyOffset())));
  }
  const int32_t end_row = sequence.first_row + sequence.num_rows;
  const auto first = std::lower_bound(
      input.logits_rows.begin(), input.logits_rows.end(), sequence.first_row);
  for (auto row = first; row != input.logits_rows.end() && *row < end_row;
       ++row) {
    const int32_t length =
        sequence.first_position + *row - sequence.first_row + 1;
    const auto tokens = std::span(sequence_tokens_)
                            .first(length)
                            .last(std::min(length, window));
    next_tokens_.push_back(tokens.back() == kPoison ? kPoison
                                                    : NextToken(tokens));
  }
}

const ColumnBlocks& ScriptedModel::Logits(int32_t first, int32_t count) {
  CHECK_LE(count, limits_.max_logits_rows);
  float* const data = logits_.block_data(0);
  std::fill_n(data, count * kVocabSize, 0.0f);
  for (int32_t row = 0; row < count; ++row) {
    const TokenId token = next_tokens_[first + row];
    data[row * kVocabSize + token] =
        token == kPoison ? std::numeric_limits<float>::quiet_NaN()
                         : kChosenLogit;
  }
  return logits_;
}

}  // namespace folio
