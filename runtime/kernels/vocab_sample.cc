#include "runtime/kernels/vocab_sample.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/vocab_sample.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/softmax_weight-inl.h"
#include "runtime/kernels/vectors-inl.h"

// Compiled once for each target; what does not depend on it, once.
#ifndef RUNTIME_KERNELS_VOCAB_SAMPLE_CC_ONCE
#define RUNTIME_KERNELS_VOCAB_SAMPLE_CC_ONCE
namespace folio {
namespace {

// The mass of a weight is its number of 2^-40ths.
constexpr double kMassUnits = 0x1p40;
// Sums of masses stay below 2^63.
constexpr int32_t kMaxCols = 1 << 23;
// Adding it to a number below 2^52 rounds that to the nearest integer (ties to
// even), which is then found in the lower bits.
constexpr double kRounder = 0x1p52;

uint64_t MassOf(float weight) {
  return std::bit_cast<uint64_t>(weight * kMassUnits + kRounder) -
         std::bit_cast<uint64_t>(kRounder);
}

}  // namespace
}  // namespace folio
#endif  // RUNTIME_KERNELS_VOCAB_SAMPLE_CC_ONCE

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {
namespace {

// `out` may be `x`.
void WeightsOfPart(const float* x, int32_t n, const Weighting& weighting,
                   float* out) {
  const FloatTag d;
  int32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(SoftmaxWeight(hn::LoadU(d, x + i), weighting), d, out + i);
  }
  for (; i < n; ++i) {
    out[i] = hn::GetLane(SoftmaxWeight(hn::Set(d, x[i]), weighting));
  }
}

// The masses of `n` weights that are at least `least`, added up.
uint64_t SumOfMasses(const float* weights, int32_t n, float least) {
  const hn::CappedTag<double, 8> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  const hn::RebindToUnsigned<decltype(wide)> bits;
  constexpr int32_t kWide = hn::MaxLanes(wide);
  constexpr int32_t kVectors = 4;
  const auto rounder = hn::Set(wide, kRounder);
  const auto rounder_bits = hn::BitCast(bits, rounder);
  const auto units = hn::Set(wide, kMassUnits);
  const auto limit = hn::Set(narrow, least);
  hn::Vec<decltype(bits)> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(bits);
  int32_t i = 0;
  for (; i + kVectors * kWide <= n; i += kVectors * kWide) {
    for (int32_t v = 0; v < kVectors; ++v) {
      const auto weight = hn::LoadU(narrow, weights + i + v * kWide);
      const auto kept = hn::IfThenElseZero(hn::Ge(weight, limit), weight);
      const auto mass = hn::BitCast(
          bits, hn::MulAdd(hn::PromoteTo(wide, kept), units, rounder));
      sums[v] = hn::Add(sums[v], hn::Sub(mass, rounder_bits));
    }
  }
  HWY_ALIGN uint64_t lanes[kWide];
  hn::Store(hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])), bits,
            lanes);
  uint64_t total = 0;
  for (const uint64_t lane : lanes) total += lane;
  for (; i < n; ++i) {
    if (weights[i] >= least) total += MassOf(weights[i]);
  }
  return total;
}

// The first place up to which weights that are at least `least` have together
// more mass than `target`. REQUIRES: all of them have.
int32_t FindPlace(const float* weights, float least, uint64_t target,
                  int32_t n) {
  constexpr int32_t kChunk = 256;
  int32_t i = 0;
  for (; i + kChunk <= n; i += kChunk) {
    const uint64_t mass = SumOfMasses(weights + i, kChunk, least);
    if (mass > target) break;
    target -= mass;
  }
  for (;; ++i) {
    if (weights[i] < least) continue;
    const uint64_t mass = MassOf(weights[i]);
    if (mass > target) return i;
    target -= mass;
  }
}

// Copies the weights that are at least `least` and below `limit`, in order, and
// returns how many they are. `out` may be `weights`. Up to a vector of elements
// behind them is overwritten.
int32_t CopyBetween(const float* weights, int32_t n, float least, float limit,
                    float* out) {
  const FloatTag d;
  const V first = hn::Set(d, least);
  const V end = hn::Set(d, limit);
  int32_t count = 0;
  int32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V weight = hn::LoadU(d, weights + i);
    const auto between = hn::And(hn::Ge(weight, first), hn::Lt(weight, end));
    if (hn::AllFalse(d, between)) continue;
    count += static_cast<int32_t>(
        hn::CompressStore(weight, between, d, out + count));
  }
  for (; i < n; ++i) {
    const float weight = weights[i];
    if (weight >= least && weight < limit) out[count++] = weight;
  }
  return count;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace folio {
namespace {

HWY_EXPORT(WeightsOfPart);
HWY_EXPORT(SumOfMasses);
HWY_EXPORT(FindPlace);
HWY_EXPORT(CopyBetween);

// What a nucleus keeps: every weight greater than `least`, and of those equal
// to it the first `num_least` of `num_equal`.
struct Nucleus {
  float least;
  int64_t num_least;
  int64_t num_equal;
  uint64_t mass;  // Of all that is kept.
};

// All weights are below it.
constexpr float kAboveAll = 2;

// A weight such that all lesser ones together have no more mass than `spare`,
// and so can all go: each has at most the n-th part of it.
float FloorFor(uint64_t spare, int32_t n) {
  const double part = static_cast<double>(spare / n) / kMassUnits;
  constexpr float kMassless = 0.5 / kMassUnits;  // As are all below.
  return std::max(kMassless, std::nextafter(static_cast<float>(part), 0.0f));
}

// The nucleus of `weights` that has at least `wanted` of their mass. Bisects
// the bits of a float, which are in the order of the (positive) values, for the
// greatest weight that it may have as its least. What has been decided about is
// left out of the steps that follow, so that most rows take about as long as
// two steps on all weights, and no row longer than 30. `candidates` is scratch
// memory. REQUIRES: 0 < wanted <= mass, that of `weights`.
Nucleus FindNucleus(std::span<const float> weights, uint64_t mass,
                    uint64_t wanted, float* candidates) {
  const int32_t n = static_cast<int32_t>(weights.size());
  const float floor = FloorFor(mass - wanted, n);
  int32_t count = HWY_DYNAMIC_DISPATCH(CopyBetween)(weights.data(), n, floor,
                                                    kAboveAll, candidates);
  // Weights from `low` on have the mass that is wanted, weights from `high` on
  // lack `missing` of it. The candidates are those from `low` on, below `high`.
  uint32_t low = std::bit_cast<uint32_t>(floor);
  uint32_t high = std::bit_cast<uint32_t>(kAboveAll);
  uint64_t missing = wanted;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    const uint64_t upper_mass = HWY_DYNAMIC_DISPATCH(SumOfMasses)(
        candidates, count, std::bit_cast<float>(middle));
    if (upper_mass >= missing) {
      low = middle;
    } else {
      high = middle;
      missing -= upper_mass;
    }
    count = HWY_DYNAMIC_DISPATCH(CopyBetween)(
        candidates, count, std::bit_cast<float>(low),
        std::bit_cast<float>(high), candidates);
  }
  const float least = std::bit_cast<float>(low);
  const uint64_t each = MassOf(least);
  const uint64_t num_least = (missing + each - 1) / each;
  return {.least = least,
          .num_least = static_cast<int64_t>(num_least),
          .num_equal = count,
          .mass = wanted - missing + num_least * each};
}

// Sets to 0 those of the least weights that are not kept.
void DropLast(const Nucleus& nucleus, std::span<float> weights) {
  int64_t num_dropped = nucleus.num_equal - nucleus.num_least;
  for (size_t i = weights.size(); num_dropped > 0; --i) {
    if (weights[i - 1] != nucleus.least) continue;
    weights[i - 1] = 0;
    --num_dropped;
  }
}

// The place of the draw among `weights`, of which the greatest is 1; they are
// changed.
int32_t Draw(std::span<float> weights, const Categorical& categorical, double u,
             float* candidates) {
  const int32_t n = static_cast<int32_t>(weights.size());
  uint64_t mass =
      HWY_DYNAMIC_DISPATCH(SumOfMasses)(weights.data(), n, /*least=*/0);
  float least = 0;
  if (categorical.top_p < 1) {
    const uint64_t wanted =
        std::clamp(static_cast<uint64_t>(std::ceil(categorical.top_p *
                                                   static_cast<double>(mass))),
                   uint64_t{1}, mass);
    const Nucleus nucleus = FindNucleus(weights, mass, wanted, candidates);
    DropLast(nucleus, weights);
    least = nucleus.least;
    mass = nucleus.mass;
  }
  if (categorical.min_p > least) {
    least = categorical.min_p;
    mass = HWY_DYNAMIC_DISPATCH(SumOfMasses)(weights.data(), n, least);
  }
  // (The product may be rounded up.)
  const uint64_t target =
      std::min(static_cast<uint64_t>(u * static_cast<double>(mass)), mass - 1);
  return HWY_DYNAMIC_DISPATCH(FindPlace)(weights.data(), least, target, n);
}

}  // namespace

VocabScratch::VocabScratch(int32_t cols)
    : cols_(cols),
      weights_(std::make_unique_for_overwrite<float[]>(cols)),
      candidates_(std::make_unique_for_overwrite<float[]>(
          cols + ColumnBlocks::kCutMultiple)) {
  CHECK_GE(cols, 1);
  CHECK_LT(cols, kMaxCols);
  top_.reserve(cols);
}

void SoftmaxWeights(const ColumnBlocks& logits, int32_t row, float max,
                    float inverse_temperature, std::span<float> out) {
  const Weighting weighting{max, inverse_temperature};
  logits.ForEachPart(row, 0, logits.cols(),
                     [&](const float* x, int32_t n, int32_t column) {
                       HWY_DYNAMIC_DISPATCH(WeightsOfPart)
                       (x, n, weighting, out.data() + column);
                     });
}

int32_t SampleCategorical(const ColumnBlocks& logits, int32_t row, float max,
                          const Categorical& categorical, double u,
                          VocabScratch& scratch) {
  CHECK_LE(logits.cols(), scratch.cols());
  const int32_t top_k = categorical.top_k;
  if (top_k == 0 || top_k >= logits.cols()) {
    const std::span<float> weights = scratch.weights().first(logits.cols());
    SoftmaxWeights(logits, row, max, categorical.inverse_temperature, weights);
    return Draw(weights, categorical, u, scratch.candidates());
  }
  std::vector<IndexedValue>& top = scratch.top();
  TopK(logits, row, top_k, top);
  std::sort(top.begin(), top.end(),
            [](const IndexedValue& a, const IndexedValue& b) {
              return a.index < b.index;
            });
  const std::span<float> weights = scratch.weights().first(top.size());
  std::transform(top.begin(), top.end(), weights.begin(),
                 [](const IndexedValue& entry) { return entry.value; });
  HWY_DYNAMIC_DISPATCH(WeightsOfPart)
  (weights.data(), top_k, {max, categorical.inverse_temperature},
   weights.data());
  return top[Draw(weights, categorical, u, scratch.candidates())].index;
}

}  // namespace folio
#endif  // HWY_ONCE
