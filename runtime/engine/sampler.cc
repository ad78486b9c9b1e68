#include "runtime/engine/sampler.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>

#include "runtime/base/philox.h"
#include "runtime/engine/logit_changes.h"

namespace folio {
namespace {

int32_t TopCount(const Sequence& sequence) {
  return sequence.request->sampling.logprobs.value_or(0);
}

// Room for `count` tokens and their logprobs, to be filled by index: workers
// write to different elements at the same time.
void MakeRoom(const Sequence& sequence, size_t count, bool logprobs,
              ScoredTokens& out) {
  out.tokens.resize(count);
  if (!logprobs) return;
  out.logprobs.resize(count);
  out.top_count = TopCount(sequence);
  out.top.resize(count * out.top_count);
}

// What tokens are drawn from at this temperature; temperature 0, and one whose
// inverse overflows, are greedy, and none.
std::optional<float> InverseTemperature(const SamplingParams& sampling) {
  const float inverse = 1.0f / sampling.temperature;
  return std::isfinite(inverse) ? std::optional(inverse) : std::nullopt;
}

}  // namespace

Sampler::Sampler(Executor* executor, int32_t vocab_size) : executor_(executor) {
  for (int i = 0; i < executor->num_workers(); ++i) {
    scratch_.emplace_back(vocab_size);
  }
}

void Sampler::Start(const StepInput& input,
                    std::span<const Sequence* const> sequences,
                    StepResult& result) {
  sequences_ = sequences;
  result.sequences.Clear();
  for (const Sequence* sequence : sequences) {
    result.sequences.Append().id = sequence->id;
  }
  tasks_.clear();
  next_task_ = 0;
  for (const ScoreInput& score : input.scores) {
    ScoredTokens& prompt = result.sequences[score.sequence].prompt;
    tasks_.push_back({.logits_row = score.logits_row,
                      .sequence = score.sequence,
                      .index = static_cast<int32_t>(prompt.tokens.size()),
                      .token = score.token});
    MakeRoom(*sequences[score.sequence], prompt.tokens.size() + 1,
             /*logprobs=*/true, prompt);
  }
  for (const SampleInput& sample : input.samples) {
    const Sequence& sequence = *sequences[sample.sequence];
    ScoredTokens& sampled = result.sequences[sample.sequence].sampled;
    tasks_.push_back({.logits_row = sample.logits_row,
                      .sequence = sample.sequence,
                      .index = static_cast<int32_t>(sampled.tokens.size())});
    MakeRoom(sequence, sampled.tokens.size() + 1,
             sequence.request->sampling.logprobs.has_value(), sampled);
  }
  std::sort(tasks_.begin(), tasks_.end(), [](const Task& a, const Task& b) {
    return a.logits_row != b.logits_row ? a.logits_row < b.logits_row
                                        : a.sequence < b.sequence;
  });
}

void Sampler::SampleTile(const ColumnBlocks& logits, int32_t first,
                         int32_t count, StepResult& result) {
  const size_t begin = next_task_;
  while (next_task_ < tasks_.size() &&
         tasks_[next_task_].logits_row < first + count) {
    ++next_task_;
  }
  executor_->ParallelFor(
      static_cast<int>(next_task_ - begin), [&](int i, int worker) {
        const Task& task = tasks_[begin + i];
        Run(logits, task.logits_row - first, task, scratch_[worker],
            result.sequences[task.sequence]);
      });
}

void Sampler::Run(const ColumnBlocks& logits, int32_t row, const Task& task,
                  Scratch& scratch, SequenceResult& result) const {
  const MaxResult max = ArgMax(logits, row);
  if (max.has_nan || !std::isfinite(max.value)) {
    // Several rows of one sequence may find this at the same time.
    std::atomic_ref(result.not_finite).store(true, std::memory_order_relaxed);
    return;
  }
  const LogitsRow raw{&logits, row, max};
  if (task.token == kSample) {
    Sample(raw, task, scratch, result);
    return;
  }
  result.prompt.tokens[task.index] = task.token;
  Score(raw, /*scale=*/1, task.index, scratch.draw, result.prompt);
}

TokenId Sampler::ChooseToken(const LogitsRow& from, const Sequence& sequence,
                             VocabScratch& scratch) {
  const SamplingParams& sampling = sequence.request->sampling;
  const std::optional<float> inverse = InverseTemperature(sampling);
  if (!inverse.has_value()) return from.max.index;
  const double u = UniformDouble(
      *sampling.seed + static_cast<uint64_t>(sequence.sample_index),
      /*stream=*/0, sequence.num_generated());
  return SampleCategorical(*from.logits, from.row, from.max.value,
                           {.inverse_temperature = *inverse,
                            .top_k = sampling.top_k,
                            .top_p = sampling.top_p,
                            .min_p = sampling.min_p},
                           u, scratch);
}

void Sampler::Score(const LogitsRow& from, float scale, int32_t index,
                    VocabScratch& scratch, ScoredTokens& out) {
  if (out.logprobs.empty()) return;
  const double log_sum =
      LogSumExp(*from.logits, from.row, from.max.value, scale);
  const auto logprob = [&](float logit) {
    return static_cast<float>(scale * logit - log_sum);
  };
  out.logprobs[index] = logprob(from.logits->at(from.row, out.tokens[index]));
  if (out.top_count == 0) return;
  const std::vector<IndexedValue>& likeliest = scratch.top();
  TopK(*from.logits, from.row, out.top_count, scratch.top());
  TokenLogprob* const top = &out.top[index * out.top_count];
  for (size_t i = 0; i < likeliest.size(); ++i) {
    top[i] = {.token = likeliest[i].index,
              .logprob = logprob(likeliest[i].value)};
  }
}

void Sampler::Sample(const LogitsRow& raw, const Task& task, Scratch& scratch,
                     SequenceResult& result) const {
  const Sequence& sequence = *sequences_[task.sequence];
  ScoredTokens& out = result.sampled;
  LogitsRow from = raw;
  if (ChangesLogits(sequence)) {
    const std::span<float> changed(scratch.changed.block_data(0),
                                   static_cast<size_t>(scratch.changed.cols()));
    raw.logits->CopyRow(raw.row, /*first=*/0, changed);
    ChangeLogits(sequence, changed, scratch.counts);
    from = {&scratch.changed, /*row=*/0, ArgMax(scratch.changed, 0)};
    if (!std::isfinite(from.max.value)) {
      result.exhausted = from.max.value < 0;
      result.not_finite = !result.exhausted;
      out.Truncate(task.index);
      return;
    }
  }
  out.tokens[task.index] = ChooseToken(from, sequence, scratch.draw);
  const SamplingParams& sampling = sequence.request->sampling;
  if (sampling.processed_logprobs) {
    Score(from, InverseTemperature(sampling).value_or(1), task.index,
          scratch.draw, out);
  } else {
    Score(raw, /*scale=*/1, task.index, scratch.draw, out);
  }
}

}  // namespace folio
