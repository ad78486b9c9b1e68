// What one forward pass computes: the applied plan, flattened to arrays.

#ifndef RUNTIME_MODEL_STEP_INPUT_H_
#define RUNTIME_MODEL_STEP_INPUT_H_

#include <cstdint>
#include <span>

#include "cache/page_table.h"
#include "runtime/base/types.h"

namespace folio {

// One sequence's part of the ragged batch: rows [first_row, first_row +
// num_rows) hold its tokens at positions [first_position, first_position +
// num_rows).
struct SequenceInput {
  int32_t first_row;
  int32_t num_rows;
  int32_t first_position;
  // Covers at least positions [0, first_position + num_rows). K/V of the
  // positions before first_position is already there.
  std::span<const PageId> pages;
};

// A sample to take. Several may name one row: the first tokens of forks.
struct SampleInput {
  int32_t logits_row;  // Index into StepInput::logits_rows.
  int32_t sequence;    // Index into those of the step, forks included.
};

// A known token to score: a prompt token by the row before it.
struct ScoreInput {
  int32_t logits_row;  // Index into StepInput::logits_rows.
  int32_t sequence;    // As in SampleInput.
  TokenId token;
};

// Spans only: whoever makes a StepInput keeps the arrays alive, and scheduler
// and model need not know each other.
struct StepInput {
  std::span<const TokenId> tokens;     // [num_rows], each in the vocabulary.
  std::span<const int32_t> positions;  // [num_rows]
  std::span<const Slot> slots;         // [num_rows], where K/V is written.
  // Those that compute something: a fork only samples.
  std::span<const SequenceInput> sequences;
  // Rows, ascending, whose logits somebody will read.
  std::span<const int32_t> logits_rows;
  // Both ascending by logits_row.
  std::span<const SampleInput> samples;
  std::span<const ScoreInput> scores;
};

}  // namespace folio

#endif  // RUNTIME_MODEL_STEP_INPUT_H_
