#include "runtime/kernels/column_blocks.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace folio {

ColumnBlocks::ColumnBlocks(int32_t max_rows, std::vector<int32_t> cuts)
    : max_rows_(max_rows), cuts_(std::move(cuts)) {
  CHECK_GE(max_rows_, 1);
  CHECK_GE(cuts_.size(), 2u);
  CHECK_EQ(cuts_.front(), 0);
  for (size_t i = 1; i < cuts_.size(); ++i) CHECK_LT(cuts_[i - 1], cuts_[i]);
  for (size_t i = 1; i + 1 < cuts_.size(); ++i) {
    CHECK_EQ(cuts_[i] % kCutMultiple, 0);
  }
  data_ = AlignedArray<float>(static_cast<size_t>(max_rows_) * cuts_.back());
}

std::vector<int32_t> ColumnBlocks::EvenCuts(int32_t cols, int32_t num_blocks) {
  CHECK_GE(cols, 1);
  CHECK_GE(num_blocks, 1);
  const int64_t units = (cols + kCutMultiple - 1) / kCutMultiple;
  const int64_t blocks = std::min<int64_t>(units, num_blocks);
  std::vector<int32_t> cuts;
  for (int64_t b = 0; b < blocks; ++b) {
    cuts.push_back(static_cast<int32_t>(units * b / blocks) * kCutMultiple);
  }
  cuts.push_back(cols);
  return cuts;
}

void ColumnBlocks::KeepMaxima() {
  size_t size = 0;
  first_maxima_.clear();
  for (int32_t b = 0; b < num_blocks(); ++b) {
    first_maxima_.push_back(size);
    size += size_t(max_rows_) * NumStripes(b) * kCutMultiple;
  }
  maxima_ = AlignedArray<float>(size);
}

std::span<const float> ColumnBlocks::RowFrom(int32_t row,
                                             int32_t column) const {
  CHECK_LT(column, cols());
  int32_t b = 0;
  while (cuts_[b + 1] <= column) ++b;
  return Row(b, row).subspan(column - cuts_[b]);
}

void ColumnBlocks::CopyRow(int32_t row, int32_t first,
                           std::span<float> out) const {
  ForEachPart(row, first, first + static_cast<int32_t>(out.size()),
              [&](const float* data, int32_t count, int32_t column) {
                std::copy_n(data, count, out.data() + (column - first));
              });
}

float ColumnBlocks::at(int32_t row, int32_t col) const {
  float value;
  CopyRow(row, col, {&value, 1});
  return value;
}

}  // namespace folio
