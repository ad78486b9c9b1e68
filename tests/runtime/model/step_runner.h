// Runs a model without an engine: page tables made by hand.

#ifndef TESTS_RUNTIME_MODEL_STEP_RUNNER_H_
#define TESTS_RUNTIME_MODEL_STEP_RUNNER_H_

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "cache/kv_storage.h"
#include "runtime/model/model.h"

namespace folio {

// A few sequences, each with enough pages for the pool's share of it; pages are
// dealt from the back, so that logical and physical order differ.
class StepRunner {
 public:
  // Models need a max_logits_rows of at least that.
  static constexpr size_t kLogitsTile = 8;

  StepRunner(Model& model, int32_t page_size, int32_t num_sequences,
             int32_t max_tokens)
      : model_(model), page_size_(page_size) {
    const KvLayout layout(model.info().kv_shape, page_size);
    const int32_t pages_each =
        static_cast<int32_t>(layout.PagesFor(max_tokens));
    SerialExecutor executor;
    auto storage = KvStorage::Create(
        layout, layout.page_bytes() * pages_each * num_sequences, executor);
    CHECK(storage.ok()) << storage.status();
    storage_ = *std::move(storage);
    sequences_.resize(num_sequences);
    for (int32_t page = pages_each * num_sequences - 1; page >= 0; --page) {
      sequences_[page % num_sequences].pages.push_back(PageId{page});
    }
  }

  // Adds a part of the next step: tokens that follow those so far.
  void Add(int32_t sequence, std::span<const TokenId> tokens) {
    Sequence& s = sequences_[sequence];
    parts_.push_back({.first_row = static_cast<int32_t>(tokens_.size()),
                      .num_rows = static_cast<int32_t>(tokens.size()),
                      .first_position = s.num_computed,
                      .pages = s.pages});
    for (const TokenId token : tokens) {
      tokens_.push_back(token);
      positions_.push_back(s.num_computed);
      slots_.push_back(
          {s.pages[s.num_computed / page_size_], s.num_computed % page_size_});
      ++s.num_computed;
    }
  }

  // Runs the step and returns all logits of each row.
  std::vector<std::vector<float>> Run() {
    std::vector<int32_t> rows(tokens_.size());
    std::iota(rows.begin(), rows.end(), 0);
    return Run(rows);
  }

  // The same of `rows` alone, which ascend.
  std::vector<std::vector<float>> Run(std::span<const int32_t> rows) {
    StepInput input;
    input.tokens = tokens_;
    input.positions = positions_;
    input.slots = slots_;
    input.sequences = parts_;
    input.logits_rows = rows;
    model_.Forward(input, *storage_);
    std::vector<std::vector<float>> logits;
    for (size_t first = 0; first < rows.size(); first += kLogitsTile) {
      const size_t count = std::min(kLogitsTile, rows.size() - first);
      const ColumnBlocks& tile = model_.Logits(static_cast<int32_t>(first),
                                               static_cast<int32_t>(count));
      for (size_t row = 0; row < count; ++row) {
        tile.CopyRow(static_cast<int32_t>(row), 0,
                     logits.emplace_back(model_.info().vocab_size));
      }
    }
    tokens_.clear();
    positions_.clear();
    slots_.clear();
    parts_.clear();
    return logits;
  }

 private:
  struct Sequence {
    std::vector<PageId> pages;
    int32_t num_computed = 0;
  };

  Model& model_;
  const int32_t page_size_;
  std::unique_ptr<KvStorage> storage_;
  std::vector<Sequence> sequences_;
  std::vector<TokenId> tokens_;
  std::vector<int32_t> positions_;
  std::vector<Slot> slots_;
  std::vector<SequenceInput> parts_;
};

}  // namespace folio

#endif  // TESTS_RUNTIME_MODEL_STEP_RUNNER_H_
