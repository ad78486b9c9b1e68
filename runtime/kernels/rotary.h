// Rotary position embeddings: angles.

#ifndef RUNTIME_KERNELS_ROTARY_H_
#define RUNTIME_KERNELS_ROTARY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/executor.h"
#include "runtime/kernels/aligned_array.h"

namespace folio {

// How the frequencies of a model are stretched beyond the context that it was
// first trained on.
struct RopeScaling {
  enum class Kind {
    kNone,
    kLinear,  // Every frequency is divided by `factor`.
    kLlama3,  // Low frequencies are, high ones are not, between they fade.
  };
  Kind kind = Kind::kNone;
  double factor = 1;
  // kLlama3: waves that fit into the original context fewer than
  // low_freq_factor times are low, more than high_freq_factor times high.
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double original_context = 8192;
};

// The angle by which position 1 turns each pair of a head: for pair i of
// head_dim / 2, theta^(-2 i / head_dim) (Su et al., "RoFormer", 2021), scaled
// (Chen et al., "Extending Context Window of Large Language Models via
// Positional Interpolation", 2023; the Llama 3.1 model card).
std::vector<double> RopeFrequencies(int32_t head_dim, double theta,
                                    const RopeScaling& scaling);

// Cosines and sines for the rows of a batch. The angle of position p is
// p * frequency in double precision, so that late positions lose no digits;
// cosine and sine are those of p's multiple of 4096 and of the rest, combined
// by the addition theorems, so that tables stay small for any context.
class Rotary {
 public:
  // REQUIRES: frequencies not empty; positions stay below context_length.
  Rotary(std::span<const double> frequencies, int32_t context_length,
         int32_t max_rows);

  int32_t num_pairs() const { return num_pairs_; }

  // Prepares rows [0, positions.size()). Allocates nothing.
  void SetPositions(std::span<const int32_t> positions, Executor& executor);

  // [num_pairs] each, of a row of the last SetPositions.
  const float* cosines(int32_t row) const {
    return cosines_.data() + size_t(row) * num_pairs_;
  }
  const float* sines(int32_t row) const {
    return sines_.data() + size_t(row) * num_pairs_;
  }

 private:
  struct Turn {
    double cosine;
    double sine;
  };
  static std::vector<Turn> Turns(std::span<const double> frequencies,
                                 int32_t count, int32_t step);

  int32_t num_pairs_;
  std::vector<Turn> coarse_;     // [context / 4096 + 1, num_pairs]
  std::vector<Turn> fine_;       // [4096, num_pairs]
  AlignedArray<float> cosines_;  // [max_rows, num_pairs]
  AlignedArray<float> sines_;    // [max_rows, num_pairs]
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_ROTARY_H_
