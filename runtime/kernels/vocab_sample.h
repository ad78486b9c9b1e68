// Drawing a token from one row of logits.

#ifndef RUNTIME_KERNELS_VOCAB_SAMPLE_H_
#define RUNTIME_KERNELS_VOCAB_SAMPLE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/kernels/column_blocks.h"
#include "runtime/kernels/vocab_reduce.h"

namespace folio {

// All results are the same to the last bit wherever the columns are cut.

// Scratch memory for rows of `cols` logits, all of it taken at once; what is
// never used is never touched, so it costs address space alone. One worker's.
class VocabScratch {
 public:
  explicit VocabScratch(int32_t cols);

  int32_t cols() const { return cols_; }
  // [cols]
  std::span<float> weights() {
    return {weights_.get(), static_cast<size_t>(cols_)};
  }
  // [cols, and one vector more that a compressing store may touch]
  float* candidates() { return candidates_.get(); }
  // For TopK. Empty, with room for `cols`.
  std::vector<IndexedValue>& top() { return top_; }

 private:
  int32_t cols_;
  std::unique_ptr<float[]> weights_;
  std::unique_ptr<float[]> candidates_;
  std::vector<IndexedValue> top_;
};

// What is drawn from: softmax(inverse_temperature * logits), cut to the `top_k`
// greatest logits (of equal ones, those with lower indices), and what is left
// of it cut to its nucleus: the shortest prefix of the weights in descending
// order (of equal ones, lower indices first) that has at least `top_p` of their
// sum, and what is left of that cut to the weights that are at least `min_p`
// times the greatest. (The nucleus is Holtzman et al.'s, "The Curious Case of
// Neural Text Degeneration", 2019; min_p is Nguyen et al.'s, "Turning Up the
// Heat", 2024.)
struct Categorical {
  float inverse_temperature = 1;
  int32_t top_k = 0;  // 0: all.
  float top_p = 1;    // 1: all.
  float min_p = 0;    // 0: all.
};

// out[i] = exp(inverse_temperature * (logit i - max)). REQUIRES: as
// SampleCategorical; out.size() == logits.cols().
void SoftmaxWeights(const ColumnBlocks& logits, int32_t row, float max,
                    float inverse_temperature, std::span<float> out);

// Draws by inversion: the smallest index whose cumulative weight, among those
// that are left, exceeds `u` times their sum. Weights count in whole 2^-40ths
// of the greatest one, to the nearest: their sums are then exact, in any order.
// Never an index with weight 0, such as that of a logit of -infinity.
//
// Time: O(cols) for any row, if with very different factors: two passes over
// the row and the draw, and with top_p between 2 and 30 light ones over the
// weights. With top_k: TopK, and O(k log(k)).
// REQUIRES: `max` is the row's maximum, finite; no NaN; inverse_temperature >
// 0, finite; top_k >= 0; 0 < top_p <= 1; 0 <= min_p <= 1; 0 <= u < 1;
// scratch.cols() >= logits.cols(), below 2^23.
int32_t SampleCategorical(const ColumnBlocks& logits, int32_t row, float max,
                          const Categorical& categorical, double u,
                          VocabScratch& scratch);

}  // namespace folio

#endif  // RUNTIME_KERNELS_VOCAB_SAMPLE_H_
