#include "runtime/engine/step_builder.h"

#include <glog/logging.h>

namespace folio {

const StepInput& StepBuilder::Build(const AppliedPlan& plan,
                                    const Scheduler& scheduler) {
  sequences_.clear();
  tokens_.clear();
  positions_.clear();
  slots_.clear();
  sequence_inputs_.clear();
  logits_rows_.clear();
  samples_.clear();
  scores_.clear();
  for (const AppliedSequence& planned : plan.sequences) {
    const Sequence& sequence = scheduler.sequence(planned.id);
    const int32_t first_row = static_cast<int32_t>(tokens_.size());
    sequences_.push_back(&sequence);
    if (planned.count == 0) {
      AddFork(sequence);
      continue;
    }
    sequence_inputs_.push_back({.first_row = first_row,
                                .num_rows = planned.count,
                                .first_position = sequence.num_computed,
                                .pages = sequence.table.pages()});
    AddRows(sequence, planned.count, scheduler.cache());
    AddLogitsRows(sequence, planned.count, first_row);
  }
  input_ = {.tokens = tokens_,
            .positions = positions_,
            .slots = slots_,
            .sequences = sequence_inputs_,
            .logits_rows = logits_rows_,
            .samples = samples_,
            .scores = scores_};
  return input_;
}

void StepBuilder::AddRows(const Sequence& sequence, int32_t count,
                          const KvCache& cache) {
  for (int32_t i = 0; i < count; ++i) {
    const int32_t position = sequence.num_computed + i;
    tokens_.push_back(sequence.tokens[position]);
    positions_.push_back(position);
    slots_.push_back(cache.SlotOf(sequence.table, position));
  }
}

void StepBuilder::AddLogitsRows(const Sequence& sequence, int32_t count,
                                int32_t first_row) {
  const int32_t index = static_cast<int32_t>(sequences_.size()) - 1;
  const auto [score_begin, score_end] = sequence.PromptScoringRange(count);
  for (int32_t position = score_begin; position < score_end; ++position) {
    scores_.push_back({.logits_row = static_cast<int32_t>(logits_rows_.size()),
                       .sequence = index,
                       .token = sequence.tokens[position + 1]});
    logits_rows_.push_back(first_row + position - sequence.num_computed);
  }
  if (sequence.SamplesAfter(count)) {
    samples_.push_back({.logits_row = static_cast<int32_t>(logits_rows_.size()),
                        .sequence = index});
    logits_rows_.push_back(first_row + count - 1);
  }
}

void StepBuilder::AddFork(const Sequence& sequence) {
  CHECK(!logits_rows_.empty() && sequence.SamplesAfter(0));
  samples_.push_back(
      {.logits_row = static_cast<int32_t>(logits_rows_.size()) - 1,
       .sequence = static_cast<int32_t>(sequences_.size()) - 1});
}

}  // namespace folio
