// How long a step will take, learnt from how long steps have taken.

#ifndef SCHEDULER_COST_MODEL_H_
#define SCHEDULER_COST_MODEL_H_

#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace folio {

// What a step has to do, as far as its time depends on it.
struct StepWork {
  int32_t sequences = 0;
  int32_t tokens = 0;
  // K/V that single tokens read, in tokens: memory is what costs.
  int64_t context_read = 0;
  // (query, key) pairs of chunks of several tokens: arithmetic is what costs.
  int64_t chunk_pairs = 0;

  // The next `count` tokens of a sequence after its first num_computed.
  void Add(int64_t num_computed, int32_t count);
};

// Recursive least squares with exponential forgetting (Haykin, Adaptive Filter
// Theory, ch. 10): duration ~ w . (1, sequences, tokens, few, context_read,
// chunk_pairs), where few = min(tokens, kFewTokens): up to about that many,
// reading the weights costs more than multiplying with them. Each observation
// is weighted by 1 / duration, so that relative errors count and a long step
// says no more than a short one.
//
// A function of the observations alone. Predicting and observing are O(1) and
// take no memory.
class CostModel {
 public:
  CostModel();

  // Steps that have been observed. Predictions before kMinObservations mean
  // nothing.
  static constexpr int64_t kMinObservations = 16;
  bool IsReady() const { return num_observations_ >= kMinObservations; }

  // A prediction means nothing for steps of more tokens than this, once and a
  // half the most that any recent one has had: what a token of a chunk costs
  // can't be told from steps that only decode, and noise in these moves what
  // was known of it.
  int32_t MaxPredictableTokens() const {
    return recent_most_tokens_ + recent_most_tokens_ / 2;
  }

  // Never negative.
  absl::Duration Predict(const StepWork& work) const;

  void Observe(const StepWork& work, absl::Duration duration);

 private:
  static constexpr int kNumFeatures = 6;
  using Vector = std::array<double, kNumFeatures>;

  static Vector FeaturesOf(const StepWork& work);
  double PredictSeconds(const Vector& features) const;

  Vector weights_ = {};
  std::array<Vector, kNumFeatures> covariance_ = {};
  int64_t num_observations_ = 0;
  // Of an observation, falling by a half in about 20 more.
  int32_t recent_most_tokens_ = 0;
};

}  // namespace folio

#endif  // SCHEDULER_COST_MODEL_H_
