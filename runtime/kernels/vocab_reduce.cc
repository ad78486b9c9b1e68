#include "runtime/kernels/vocab_reduce.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <span>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/vocab_reduce.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/softmax_weight-inl.h"
#include "runtime/kernels/vectors-inl.h"

// Compiled once for each target; what does not depend on it, once.
#ifndef RUNTIME_KERNELS_VOCAB_REDUCE_CC_ONCE
#define RUNTIME_KERNELS_VOCAB_REDUCE_CC_ONCE
namespace folio {
namespace {

constexpr int32_t kGroup = ColumnBlocks::kCutMultiple;
// A sum over columns keeps one accumulator for each column modulo kSumLanes.
constexpr int32_t kSumLanes = 4 * kGroup;
// Columns after which the f32 accumulators are added up in f64.
constexpr int32_t kChunk = 16 * kSumLanes;

// TopK finds its first threshold in the maxima of so many groups of elements.
constexpr int32_t kGroups = 128;

struct PartMax {
  float value;
  bool has_nan;
};

}  // namespace
}  // namespace folio
#endif  // RUNTIME_KERNELS_VOCAB_REDUCE_CC_ONCE

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The maximum of `n` elements; NaNs only set the flag.
PartMax MaxOfPart(const float* x, int32_t n) {
  const FloatTag d;
  constexpr int32_t kVectors = 4;
  V max[kVectors];
  hn::Mask<FloatTag> nan = hn::FirstN(d, 0);  // No lane.
  for (V& m : max) m = hn::Set(d, -kInfinity);
  int32_t i = 0;
  for (; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
    for (int32_t v = 0; v < kVectors; ++v) {
      const V value = hn::LoadU(d, x + i + v * kLanes);
      nan = hn::Or(nan, hn::IsNaN(value));
      max[v] = hn::IfThenElse(hn::Gt(value, max[v]), value, max[v]);
    }
  }
  PartMax result{-kInfinity, !hn::AllFalse(d, nan)};
  for (; i < n; ++i) {
    if (x[i] > result.value) result.value = x[i];
    if (std::isnan(x[i])) result.has_nan = true;
  }
  for (const V& m : max) {
    result.value = std::max(result.value, hn::GetLane(hn::MaxOfLanes(d, m)));
  }
  return result;
}

// The maxima of one stripe of a row.
void MaximaOfStripe(const float* x, float* maxima) {
  const FloatTag d;
  for (int32_t i = 0; i < kGroup; i += kLanes) {
    V max = hn::Set(d, -kInfinity);
    auto nan = hn::FirstN(d, 0);  // No lane.
    for (int32_t j = i; j < ColumnBlocks::kStripe; j += kGroup) {
      const V value = hn::LoadU(d, x + j);
      nan = hn::Or(nan, hn::IsNaN(value));
      max = hn::IfThenElse(hn::Gt(value, max), value, max);
    }
    hn::Store(hn::IfThenElse(nan, hn::NaN(d), max), d, maxima + i);
  }
}

// The same for `n` elements of each of some rows, whole stripes but for the
// last.
void MaximaOfRows(const float* x, size_t stride, int32_t n, int32_t rows,
                  float* maxima, size_t maxima_stride) {
  constexpr int32_t kStripe = ColumnBlocks::kStripe;
  for (int32_t row = 0; row < rows; ++row) {
    float* to = maxima + row * maxima_stride;
    const float* from = x + row * stride;
    int32_t i = 0;
    for (; i + kStripe <= n; i += kStripe, to += kGroup) {
      MaximaOfStripe(from + i, to);
    }
    if (i == n) continue;
    HWY_ALIGN float last[kStripe];
    std::fill_n(last, kStripe, -kInfinity);
    std::copy(from + i, from + n, last);
    MaximaOfStripe(last, to);
  }
}

// Adds the weights of one group of columns to kGroup accumulators.
HWY_INLINE void AddGroup(const float* x, const Weighting& weighting,
                         float* sums) {
  const FloatTag d;
  for (int32_t i = 0; i < kGroup; i += kLanes) {
    const V weight = SoftmaxWeight(hn::LoadU(d, x + i), weighting);
    hn::Store(hn::Add(hn::Load(d, sums + i), weight), d, sums + i);
  }
}

// Does as AddGroup for whole runs of kSumLanes columns, and returns how many
// columns these were.
int32_t AddRuns(const float* x, int32_t n, const Weighting& weighting,
                float* sums) {
  const FloatTag d;
  constexpr int32_t kVectors = kSumLanes / kLanes;
  V sum[kVectors];
  for (int32_t v = 0; v < kVectors; ++v) {
    sum[v] = hn::Load(d, sums + v * kLanes);
  }
  int32_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int32_t v = 0; v < kVectors; ++v) {
      sum[v] = hn::Add(
          sum[v], SoftmaxWeight(hn::LoadU(d, x + i + v * kLanes), weighting));
    }
  }
  for (int32_t v = 0; v < kVectors; ++v) {
    hn::Store(sum[v], d, sums + v * kLanes);
  }
  return i;
}

// Adds the weights of `n` elements that begin at column `column`, a multiple of
// kGroup, to the accumulators.
void AddWeightsOfPart(const float* x, int32_t n, int32_t column,
                      const Weighting& weighting, float* sums) {
  int32_t i = 0;
  const auto lane = [&] { return (column + i) % kSumLanes; };
  for (; i + kGroup <= n; i += kGroup) {
    if (lane() == 0) i += AddRuns(x + i, n - i, weighting, sums);
    if (i + kGroup > n) break;
    AddGroup(x + i, weighting, sums + lane());
  }
  if (i == n) return;
  HWY_ALIGN float last[kGroup];
  std::fill_n(last, kGroup, -kInfinity);
  std::copy(x + i, x + n, last);
  AddGroup(last, weighting, sums + lane());
}

// Raises each of kGroups maxima to that of the elements that fall into its
// group; which those are does not matter to anyone.
void RaiseGroupMaxima(const float* x, int32_t n, float* maxima) {
  const FloatTag d;
  int32_t i = 0;
  for (; i + kGroups <= n; i += kGroups) {
    for (int32_t j = 0; j < kGroups; j += kLanes) {
      const V value = hn::LoadU(d, x + i + j);
      const V max = hn::LoadU(d, maxima + j);
      hn::StoreU(hn::IfThenElse(hn::Gt(value, max), value, max), d, maxima + j);
    }
  }
  for (; i < n; ++i) {
    if (x[i] > maxima[i % kGroups]) maxima[i % kGroups] = x[i];
  }
}

// The first i in [from, n) with x[i] > threshold, or n.
int32_t SkipNotGreater(const float* x, int32_t from, int32_t n,
                       float threshold) {
  const FloatTag d;
  const V limit = hn::Set(d, threshold);
  int32_t i = from;
  // Four at a time while there is nothing: that is nearly always.
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    const auto greater = [&](int32_t v) {
      return hn::Gt(hn::LoadU(d, x + i + v * kLanes), limit);
    };
    const auto any =
        hn::Or(hn::Or(greater(0), greater(1)), hn::Or(greater(2), greater(3)));
    if (!hn::AllFalse(d, any)) break;
  }
  for (; i + kLanes <= n; i += kLanes) {
    const auto greater = hn::Gt(hn::LoadU(d, x + i), limit);
    const intptr_t first = hn::FindFirstTrue(d, greater);
    if (first >= 0) return i + static_cast<int32_t>(first);
  }
  for (; i < n && !(x[i] > threshold); ++i) {
  }
  return i;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace folio {
namespace {

HWY_EXPORT(MaxOfPart);
HWY_EXPORT(MaximaOfRows);
HWY_EXPORT(AddWeightsOfPart);
HWY_EXPORT(RaiseGroupMaxima);
HWY_EXPORT(SkipNotGreater);

// The sum of weights of the chunk that begins at column `begin`.
double ChunkSum(const ColumnBlocks& logits, int32_t row, int32_t begin,
                const Weighting& weighting) {
  alignas(kCacheLineBytes) float sums[kSumLanes] = {};
  logits.ForEachPart(row, begin, std::min(begin + kChunk, logits.cols()),
                     [&](const float* x, int32_t n, int32_t column) {
                       HWY_DYNAMIC_DISPATCH(AddWeightsOfPart)
                       (x, n, column, weighting, sums);
                     });
  double sum = 0;
  for (const float s : sums) sum += s;
  return sum;
}

double SumOfWeights(const ColumnBlocks& logits, int32_t row,
                    const Weighting& weighting) {
  double total = 0;
  for (int32_t begin = 0; begin < logits.cols(); begin += kChunk) {
    total += ChunkSum(logits, row, begin, weighting);
  }
  return total;
}

// A number than which at least `k` elements of the row are greater, as near
// below the k-th greatest as the maxima of a few groups tell; nothing when they
// don't. Of the greatest elements few share a group, so when k is at most half
// of the groups, about 1.4 k elements are above.
std::optional<float> FirstThreshold(const ColumnBlocks& logits, int32_t row,
                                    int32_t k) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (k > kGroups) return std::nullopt;
  alignas(kCacheLineBytes) float maxima[kGroups];
  std::fill_n(maxima, kGroups, -kInfinity);
  logits.ForEachPart(row, 0, logits.cols(),
                     [&](const float* x, int32_t n, int32_t /*column*/) {
                       HWY_DYNAMIC_DISPATCH(RaiseGroupMaxima)(x, n, maxima);
                     });
  std::nth_element(maxima, maxima + k - 1, maxima + kGroups, std::greater<>());
  const float kth = maxima[k - 1];
  if (kth == -kInfinity) return std::nullopt;
  return std::nextafter(kth, -kInfinity);
}

// Finds the greatest of the elements that it looks at, and where it lies.
class Greatest {
 public:
  // The first of `x` has the number `first`; numbers ascend from call to call.
  void Look(std::span<const float> x, int32_t first) {
    // Find the chunk first, then the place in it: the index costs nothing in
    // the long pass.
    for (size_t i = 0; i < x.size(); i += kChunk) {
      const auto chunk = x.subspan(i, std::min<size_t>(kChunk, x.size() - i));
      const PartMax part = HWY_DYNAMIC_DISPATCH(MaxOfPart)(
          chunk.data(), static_cast<int32_t>(chunk.size()));
      has_nan_ |= part.has_nan;
      if (!best_.empty() && !(part.value > value_)) continue;
      value_ = part.value;
      best_ = chunk;
      first_ = first + static_cast<int32_t>(i);
    }
  }

  MaxResult result() const {
    MaxResult result{.value = value_, .has_nan = has_nan_};
    const auto place = std::ranges::find(best_, value_);
    if (place != best_.end()) {
      result.index = first_ + static_cast<int32_t>(place - best_.begin());
    }
    return result;
  }

 private:
  float value_ = -std::numeric_limits<float>::infinity();
  bool has_nan_ = false;
  std::span<const float> best_;  // The chunk.
  int32_t first_ = 0;            // The number of its first element.
};

// ArgMax by the maxima that are kept, unless one of them is NaN.
std::optional<MaxResult> ArgMaxOfStripes(const ColumnBlocks& logits,
                                         int32_t row) {
  Greatest greatest;
  int32_t num_maxima = 0;
  for (int32_t b = 0; b < logits.num_blocks(); ++b) {
    const std::span<const float> maxima = logits.Maxima(b, row);
    greatest.Look(maxima, num_maxima);
    num_maxima += static_cast<int32_t>(maxima.size());
  }
  const MaxResult found = greatest.result();
  if (found.has_nan) return std::nullopt;
  int32_t stripe = found.index / kGroup;
  int32_t block = 0;
  for (;; ++block) {
    const int32_t stripes =
        static_cast<int32_t>(logits.Maxima(block, row).size()) / kGroup;
    if (stripe < stripes) break;
    stripe -= stripes;
  }
  const int32_t begin = stripe * ColumnBlocks::kStripe;
  const int32_t end =
      std::min(begin + ColumnBlocks::kStripe, logits.block_cols(block));
  Greatest in_stripe;
  in_stripe.Look(logits.Row(block, row).subspan(begin, end - begin),
                 logits.first_column(block) + begin);
  return in_stripe.result();
}

bool Before(const IndexedValue& a, const IndexedValue& b) {
  if (a.value != b.value) return a.value > b.value;
  return a.index < b.index;
}

}  // namespace

void FindMaxima(int32_t block, int32_t begin, int32_t end, int32_t rows,
                ColumnBlocks& y) {
  constexpr int32_t kStripe = ColumnBlocks::kStripe;
  CHECK_EQ(begin % kStripe, 0);
  CHECK(end % kStripe == 0 || end == y.block_cols(block));
  const std::span<float> maxima = y.Maxima(block, 0);
  HWY_DYNAMIC_DISPATCH(MaximaOfRows)
  (y.block_data(block) + begin, y.block_cols(block), end - begin, rows,
   maxima.data() + begin / kStripe * kGroup, maxima.size());
}

MaxResult ArgMax(const ColumnBlocks& logits, int32_t row) {
  if (logits.keeps_maxima()) {
    const std::optional<MaxResult> result = ArgMaxOfStripes(logits, row);
    if (result.has_value()) return *result;
  }
  Greatest greatest;
  logits.ForEachPart(row, 0, logits.cols(),
                     [&](const float* x, int32_t n, int32_t column) {
                       greatest.Look({x, size_t(n)}, column);
                     });
  return greatest.result();
}

double LogSumExp(const ColumnBlocks& logits, int32_t row, float max,
                 float inverse_temperature) {
  const double sum = SumOfWeights(logits, row, {max, inverse_temperature});
  return static_cast<double>(max) * inverse_temperature + std::log(sum);
}

void TopK(const ColumnBlocks& logits, int32_t row, int32_t k,
          std::vector<IndexedValue>& out) {
  CHECK_GE(k, 1);
  const size_t wanted = static_cast<size_t>(std::min(k, logits.cols()));
  const size_t full =
      std::min(2 * wanted + 64, static_cast<size_t>(logits.cols()));
  out.clear();
  out.reserve(full);
  // Only elements greater than it are looked at.
  std::optional<float> threshold = FirstThreshold(logits, row, k);
  // Once `wanted` candidates are known, an element must be greater than the
  // least of them: of equal elements the earlier ones go first.
  const auto keep_best = [&] {
    std::nth_element(out.begin(), out.begin() + wanted - 1, out.end(), Before);
    out.resize(wanted);
    threshold = out.back().value;
  };
  logits.ForEachPart(
      row, 0, logits.cols(), [&](const float* x, int32_t n, int32_t column) {
        for (int32_t i = 0; i < n; ++i) {
          if (threshold.has_value()) {
            i = HWY_DYNAMIC_DISPATCH(SkipNotGreater)(x, i, n, *threshold);
            if (i == n) return;
          }
          if (std::isnan(x[i])) continue;
          out.push_back({column + i, x[i]});
          if (out.size() == full) keep_best();
        }
      });
  if (out.size() > wanted) keep_best();
  std::sort(out.begin(), out.end(), Before);
}

}  // namespace folio
#endif  // HWY_ONCE
