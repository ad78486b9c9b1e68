#include "runtime/kernels/rotary.h"

#include <glog/logging.h>

#include <cmath>
#include <numbers>

#include "runtime/kernels/parallel_rows.h"

namespace folio {
namespace {

constexpr int32_t kFine = 4096;

double Llama3Frequency(double frequency, const RopeScaling& scaling) {
  const double turns =
      scaling.original_context * frequency / (2 * std::numbers::pi);
  if (turns < scaling.low_freq_factor) return frequency / scaling.factor;
  if (turns > scaling.high_freq_factor) return frequency;
  const double high_share =
      (turns - scaling.low_freq_factor) /
      (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - high_share) * frequency / scaling.factor + high_share * frequency;
}

}  // namespace

std::vector<double> RopeFrequencies(int32_t head_dim, double theta,
                                    const RopeScaling& scaling) {
  std::vector<double> frequencies(head_dim / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double& frequency = frequencies[i];
    frequency = std::pow(theta, -2.0 * static_cast<double>(i) / head_dim);
    switch (scaling.kind) {
      case RopeScaling::Kind::kNone:
        break;
      case RopeScaling::Kind::kLinear:
        frequency /= scaling.factor;
        break;
      case RopeScaling::Kind::kLlama3:
        frequency = Llama3Frequency(frequency, scaling);
        break;
    }
  }
  return frequencies;
}

Rotary::Rotary(std::span<const double> frequencies, int32_t context_length,
               int32_t max_rows)
    : num_pairs_(static_cast<int32_t>(frequencies.size())),
      coarse_(Turns(frequencies, context_length / kFine + 1, kFine)),
      fine_(Turns(frequencies, kFine, 1)),
      cosines_(size_t(max_rows) * num_pairs_),
      sines_(cosines_.size()) {
  CHECK_GE(num_pairs_, 1);
}

std::vector<Rotary::Turn> Rotary::Turns(std::span<const double> frequencies,
                                        int32_t count, int32_t step) {
  std::vector<Turn> turns;
  turns.reserve(count * frequencies.size());
  for (int32_t i = 0; i < count; ++i) {
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(step) * i * frequency;
      turns.push_back({std::cos(angle), std::sin(angle)});
    }
  }
  return turns;
}

void Rotary::SetPositions(std::span<const int32_t> positions,
                          Executor& executor) {
  CHECK_LE(positions.size() * num_pairs_, cosines_.size());
  const auto set = [&](int32_t row) {
    const size_t coarse = size_t(positions[row] / kFine) * num_pairs_;
    const size_t fine = size_t(positions[row] % kFine) * num_pairs_;
    CHECK_LT(coarse, coarse_.size()) << "position " << positions[row];
    float* cosines = cosines_.data() + size_t(row) * num_pairs_;
    float* sines = sines_.data() + size_t(row) * num_pairs_;
    for (int32_t i = 0; i < num_pairs_; ++i) {
      const Turn a = coarse_[coarse + i];
      const Turn b = fine_[fine + i];
      cosines[i] = static_cast<float>(a.cosine * b.cosine - a.sine * b.sine);
      sines[i] = static_cast<float>(a.sine * b.cosine + a.cosine * b.sine);
    }
  };
  ParallelRows(executor, {0, static_cast<int32_t>(positions.size())},
               [&](Rows some, int /*worker*/) {
                 for (int32_t row = some.first; row < some.end(); ++row) {
                   set(row);
                 }
               });
}

}  // namespace folio
