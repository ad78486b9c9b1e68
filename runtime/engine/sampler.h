// From logits to tokens.

#ifndef RUNTIME_ENGINE_SAMPLER_H_
#define RUNTIME_ENGINE_SAMPLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/executor.h"
#include "runtime/kernels/column_blocks.h"
#include "runtime/kernels/vocab_reduce.h"
#include "runtime/kernels/vocab_sample.h"
#include "runtime/model/step_input.h"
#include "scheduler/sequence.h"
#include "scheduler/step_result.h"

namespace folio {

// Rows are spread over the executor's workers; each row's result depends on
// that row, its sequence's parameters and its place in the sequence's random
// stream alone.
//
// The random stream of a sample: draw number t (for its t-th generated token)
// is UniformDouble(seed + sample_index, 0, t), so that nothing that happens to
// the sequence in between (preemption, another batch) can shift it.
//
// Logprobs are of the raw distribution, whatever the temperature, unless those
// of the processed one are asked for (SamplingParams).
class Sampler {
 public:
  // `executor` must outlive the sampler. Takes scratch memory for rows of
  // `vocab_size` logits here, once.
  Sampler(Executor* executor, int32_t vocab_size);

  // Makes room in `result` for everything that `input` asks for; one entry for
  // each of `sequences`, which are those of `input`, in its order. Both must
  // stay valid until the last tile.
  void Start(const StepInput& input, std::span<const Sequence* const> sequences,
             StepResult& result);

  // Handles what `input` asks for of logits rows [first, first + count), whose
  // logits are the first `count` rows of `logits`. REQUIRES: Start, then tiles
  // that cover all logits rows in order.
  void SampleTile(const ColumnBlocks& logits, int32_t first, int32_t count,
                  StepResult& result);

 private:
  // One row of logits and what is wanted of it: a sample (no token), or the
  // score of a known token.
  struct Task {
    int32_t logits_row;
    int32_t sequence;
    int32_t index;  // Among the sequence's samples, or its scored tokens.
    TokenId token = kSample;
  };
  static constexpr TokenId kSample = -1;

  // A row of logits, and their maximum.
  struct LogitsRow {
    const ColumnBlocks* logits;
    int32_t row;
    MaxResult max;
  };

  // One worker's memory.
  struct Scratch {
    explicit Scratch(int32_t vocab_size)
        : draw(vocab_size),
          changed(/*max_rows=*/1, {0, vocab_size}),
          counts(vocab_size, 0) {}

    VocabScratch draw;
    ColumnBlocks changed;         // A row of logits, to be changed.
    std::vector<int32_t> counts;  // For ChangeLogits.
  };

  void Run(const ColumnBlocks& logits, int32_t row, const Task& task,
           Scratch& scratch, SequenceResult& result) const;
  static TokenId ChooseToken(const LogitsRow& from, const Sequence& sequence,
                             VocabScratch& scratch);
  // Fills in the logprobs of token `index` of `out`, if they are asked for: by
  // the distribution of the logits times `scale`.
  static void Score(const LogitsRow& from, float scale, int32_t index,
                    VocabScratch& scratch, ScoredTokens& out);
  void Sample(const LogitsRow& raw, const Task& task, Scratch& scratch,
              SequenceResult& result) const;

  Executor* const executor_;
  std::span<const Sequence* const> sequences_;
  std::vector<Task> tasks_;  // Ascending by logits_row.
  size_t next_task_ = 0;
  std::vector<Scratch> scratch_;  // [num_workers]
};

}  // namespace folio

#endif  // RUNTIME_ENGINE_SAMPLER_H_
