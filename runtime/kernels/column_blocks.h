// The result of a matrix product whose columns were cut between workers.

#ifndef RUNTIME_KERNELS_COLUMN_BLOCKS_H_
#define RUNTIME_KERNELS_COLUMN_BLOCKS_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/kernels/aligned_array.h"

namespace folio {

// A [max_rows, cols] matrix of f32, stored as dense blocks of neighbouring
// columns: each worker writes a block of its own, as long as it needs no help.
//
// Cuts between blocks are multiples of kCutMultiple columns, a cache line, so
// that no two workers write to one line and a reduction that takes
// kCutMultiple columns at a time has one order, however many blocks there are.
class ColumnBlocks {
 public:
  static constexpr int32_t kCutMultiple = 16;

  // Block b holds columns [cuts[b], cuts[b + 1]). REQUIRES: max_rows >= 1;
  // cuts.front() == 0, strictly ascending, inner ones multiples of
  // kCutMultiple. Values start at 0.
  ColumnBlocks(int32_t max_rows, std::vector<int32_t> cuts);

  // Cuts `cols` columns into at most `num_blocks` nearly equal blocks; fewer
  // when there are not enough columns. REQUIRES: cols >= 1, num_blocks >= 1.
  static std::vector<int32_t> EvenCuts(int32_t cols, int32_t num_blocks);

  int32_t num_blocks() const { return static_cast<int32_t>(cuts_.size()) - 1; }
  int32_t cols() const { return cuts_.back(); }
  int32_t max_rows() const { return max_rows_; }
  const std::vector<int32_t>& cuts() const { return cuts_; }
  int32_t first_column(int32_t block) const { return cuts_[block]; }
  int32_t block_cols(int32_t block) const {
    return cuts_[block + 1] - cuts_[block];
  }

  // A dense [max_rows, block_cols(block)] array, aligned to 64 bytes.
  float* block_data(int32_t block) {
    return data_.data() + int64_t{max_rows_} * cuts_[block];
  }
  const float* block_data(int32_t block) const {
    return data_.data() + int64_t{max_rows_} * cuts_[block];
  }

  // Row `row` of one block: columns [first_column(block), + block_cols(block)).
  std::span<const float> Row(int32_t block, int32_t row) const {
    const size_t cols = static_cast<size_t>(block_cols(block));
    return {block_data(block) + row * cols, cols};
  }

  // Row `row` from column `column` on, to the end of its block. O(num_blocks).
  std::span<const float> RowFrom(int32_t row, int32_t column) const;

  // Copies columns [first, first + out.size()) of one row, across any cuts.
  void CopyRow(int32_t row, int32_t first, std::span<float> out) const;

  // Calls body(data, count, column) for the pieces of columns [begin, end) of
  // one row that lie in one block each, in order; `column` is a piece's first.
  template <typename Body>
  void ForEachPart(int32_t row, int32_t begin, int32_t end,
                   const Body& body) const {
    for (int32_t b = 0; b < num_blocks(); ++b) {
      const int32_t from = std::max(begin, cuts_[b]);
      const int32_t to = std::min(end, cuts_[b + 1]);
      if (from >= to) continue;
      body(Row(b, row).data() + (from - cuts_[b]), to - from, from);
    }
  }

  // Each block's stripes of kStripe neighbouring columns, the last one perhaps
  // fewer, may have maxima, which whoever writes the stripe writes then, too
  // (FindMaxima): kCutMultiple for each row of it, of which number i is the
  // greatest element of its columns i, i + kCutMultiple and so on; NaN when one
  // of those is NaN.
  static constexpr int32_t kStripe = 4 * kCutMultiple;
  void KeepMaxima();
  bool keeps_maxima() const { return maxima_.size() > 0; }
  // Of all stripes of a row in one block, in order. REQUIRES: keeps_maxima().
  std::span<const float> Maxima(int32_t block, int32_t row) const {
    const size_t size = NumStripes(block) * size_t{kCutMultiple};
    return maxima_.span().subspan(first_maxima_[block] + row * size, size);
  }
  std::span<float> Maxima(int32_t block, int32_t row) {
    const std::span<const float> maxima =
        std::as_const(*this).Maxima(block, row);
    return {const_cast<float*>(maxima.data()), maxima.size()};
  }

  // One element, for tests and single look-ups. O(num_blocks).
  float at(int32_t row, int32_t col) const;

 private:
  int32_t NumStripes(int32_t block) const {
    return (block_cols(block) + kStripe - 1) / kStripe;
  }

  int32_t max_rows_;
  std::vector<int32_t> cuts_;
  AlignedArray<float> data_;
  AlignedArray<float> maxima_;        // Of all blocks; or none.
  std::vector<size_t> first_maxima_;  // Of each block.
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_COLUMN_BLOCKS_H_
