#include "scheduler/cost_model.h"

#include <algorithm>

namespace folio {
namespace {

constexpr double kForgetting = 0.995;  // Of weight, an observation: 200 count.
// The prior: weights are 0 with this variance, in seconds a unit of feature.
constexpr double kInitialVariance = 1.0;
// Without new information on a feature, forgetting would let its variance grow
// without end.
constexpr double kMaxVariance = 1e4;
constexpr int32_t kFewTokens = 16;
// The largest of past steps counts for less by this fraction with each step.
constexpr int32_t kRecentSteps = 32;
// Steps that took no time at all (on a manual clock) weigh no more than these.
constexpr double kMinSeconds = 1e-4;

}  // namespace

void StepWork::Add(int64_t num_computed, int32_t count) {
  ++sequences;
  tokens += count;
  const int64_t pairs = count * num_computed + int64_t{count} * (count + 1) / 2;
  (count == 1 ? context_read : chunk_pairs) += pairs;
}

CostModel::CostModel() {
  for (int i = 0; i < kNumFeatures; ++i) covariance_[i][i] = kInitialVariance;
}

// Units that bring features to about the same size.
CostModel::Vector CostModel::FeaturesOf(const StepWork& work) {
  return {1.0,
          work.sequences / 32.0,
          work.tokens / 512.0,
          std::min(work.tokens, kFewTokens) / double{kFewTokens},
          static_cast<double>(work.context_read) / 16384.0,
          static_cast<double>(work.chunk_pairs) / 262144.0};
}

double CostModel::PredictSeconds(const Vector& features) const {
  double seconds = 0;
  for (int i = 0; i < kNumFeatures; ++i) seconds += weights_[i] * features[i];
  return std::max(seconds, 0.0);
}

absl::Duration CostModel::Predict(const StepWork& work) const {
  return absl::Seconds(PredictSeconds(FeaturesOf(work)));
}

void CostModel::Observe(const StepWork& work, absl::Duration duration) {
  const double seconds = std::max(absl::ToDoubleSeconds(duration), kMinSeconds);
  Vector features = FeaturesOf(work);
  double error = seconds;
  for (int i = 0; i < kNumFeatures; ++i) error -= weights_[i] * features[i];
  const double weight = 1.0 / seconds;
  error *= weight;
  for (double& feature : features) feature *= weight;

  Vector gain = {};
  double denominator = kForgetting;
  for (int i = 0; i < kNumFeatures; ++i) {
    for (int j = 0; j < kNumFeatures; ++j) {
      gain[i] += covariance_[i][j] * features[j];
    }
    denominator += features[i] * gain[i];
  }
  for (int i = 0; i < kNumFeatures; ++i) {
    weights_[i] += gain[i] / denominator * error;
  }
  for (int i = 0; i < kNumFeatures; ++i) {
    for (int j = 0; j < kNumFeatures; ++j) {
      covariance_[i][j] -= gain[i] * gain[j] / denominator;
    }
  }
  double trace = 0;
  for (int i = 0; i < kNumFeatures; ++i) trace += covariance_[i][i];
  if (trace < kMaxVariance) {
    for (Vector& row : covariance_) {
      for (double& value : row) value /= kForgetting;
    }
  }
  ++num_observations_;
  const int32_t fall = (recent_most_tokens_ + kRecentSteps - 1) / kRecentSteps;
  recent_most_tokens_ = std::max(work.tokens, recent_most_tokens_ - fall);
}

}  // namespace folio
