#include "runtime/engine/sampler.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "runtime/base/philox.h"

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

TokenId ChooseToken(const ColumnBlocks& logits, int32_t row,
                    const Sequence& sequence, const MaxResult& max,
                    VocabScratch& scratch) {
  const SamplingParams& sampling = sequence.request->sampling;
  if (sampling.temperature == 0) return max.index;
  const double u = UniformDouble(
      *sampling.seed + static_cast<uint64_t>(sequence.sample_index),
      /*stream=*/0, sequence.num_generated());
  // A temperature whose inverse overflows is greedy for all practical purposes.
  const float inverse = 1.0f / sampling.temperature;
  if (!std::isfinite(inverse)) return max.index;
  return SampleCategorical(logits, row, max.value,
                           {.inverse_temperature = inverse,
                            .top_k = sampling.top_k,
                            .top_p = sampling.top_p},
                           u, scratch);
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
                  VocabScratch& scratch, SequenceResult& result) const {
  const MaxResult max = ArgMax(logits, row);
  if (max.has_nan || !std::isfinite(max.value)) {
    // Several rows of one sequence may find this at the same time.
    std::atomic_ref(result.not_finite).store(true, std::memory_order_relaxed);
    return;
  }
  const Sequence& sequence = *sequences_[task.sequence];
  ScoredTokens& out = task.token == kSample ? result.sampled : result.prompt;
  const TokenId token = task.token == kSample
                            ? ChooseToken(logits, row, sequence, max, scratch)
                            : task.token;
  out.tokens[task.index] = token;
  if (out.logprobs.empty()) return;

  const double log_sum = LogSumExp(logits, row, max.value, 1.0f);
  const auto logprob = [log_sum](float logit) {
    return static_cast<float>(logit - log_sum);
  };
  out.logprobs[task.index] = logprob(logits.at(row, token));
  if (out.top_count == 0) return;
  const std::vector<IndexedValue>& likeliest = scratch.top();
  TopK(logits, row, out.top_count, scratch.top());
  TokenLogprob* const top = &out.top[task.index * out.top_count];
  for (size_t i = 0; i < likeliest.size(); ++i) {
    top[i] = {.token = likeliest[i].index,
              .logprob = logprob(likeliest[i].value)};
  }
}

}  // namespace folio
