#include "runtime/kernels/vocab_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/base/philox.h"
#include "tests/runtime/kernels/each_target.h"
#include "tests/runtime/kernels/logits_rows.h"
#include "tests/support/sanitized.h"

namespace folio {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int32_t kSizes[] = {1,    5,    17,   64,
                              1023, 1025, 4099, kSanitized ? 5003 : 50257};

float Max(const std::vector<float>& values) {
  return *std::max_element(values.begin(), values.end());
}

// Rows that differ in what is hard about them.
struct Row {
  const char* name;
  std::vector<float> logits;
};

std::vector<Row> Rows(int32_t size) {
  std::vector<Row> rows = {{"random", Logits(size, size)},
                           {"flat", std::vector<float>(size, 3.0f)},
                           {"nearly flat", Logits(size + 1, size)},
                           {"peaked", Logits(size + 2, size)},
                           {"tied", Logits(size + 3, size)},
                           {"ascending", Logits(size + 4, size)},
                           {"with -inf", Logits(size + 5, size)}};
  for (float& logit : rows[2].logits) logit *= 1e-4f;
  rows[3].logits[size / 2] = 40;
  for (float& logit : rows[4].logits) logit = std::round(logit / 4);
  std::sort(rows[5].logits.begin(), rows[5].logits.end());
  for (int32_t i = 0; i + 1 < size; i += 3) rows[6].logits[i] = -kInfinity;
  return rows;
}

std::vector<float> Weights(const ColumnBlocks& logits, float max,
                           float inverse_temperature) {
  std::vector<float> weights(logits.cols());
  SoftmaxWeights(logits, 1, max, inverse_temperature, weights);
  return weights;
}

// Indices in descending order of `values`, equal ones ascending.
std::vector<int32_t> Descending(const std::vector<float>& values) {
  std::vector<int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return values[a] > values[b]; });
  return order;
}

// The definition, with full sorts. `weights` are the kernel's own: whether
// those are right is another test's business.
class PlainCategorical {
 public:
  PlainCategorical(const std::vector<float>& logits, std::vector<float> weights,
                   const Categorical& categorical)
      : masses_(logits.size(), 0) {
    const float top_p = categorical.top_p;
    if (categorical.top_k > 0) {
      const std::vector<int32_t> order = Descending(logits);
      for (size_t i = categorical.top_k; i < order.size(); ++i)
        weights[order[i]] = 0;
    }
    int64_t total = 0;
    for (float weight : weights) total += MassOf(weight);
    const int64_t wanted = std::max<int64_t>(
        1, std::ceil(double{top_p} * static_cast<double>(total)));
    for (const int32_t index : Descending(weights)) {
      if (top_p < 1 && total_ >= wanted) break;
      if (weights[index] < categorical.min_p) break;
      masses_[index] = MassOf(weights[index]);
      total_ += masses_[index];
    }
  }

  int32_t Draw(double u) const {
    const double target = u * static_cast<double>(total_);
    int64_t cumulative = 0;
    for (size_t i = 0; i < masses_.size(); ++i) {
      cumulative += masses_[i];
      if (static_cast<double>(cumulative) > target) {
        return static_cast<int32_t>(i);
      }
    }
    return -1;
  }

 private:
  static int64_t MassOf(float weight) {
    return std::llrint(std::ldexp(double{weight}, 40));
  }

  std::vector<int64_t> masses_;  // 0: not kept.
  int64_t total_ = 0;
};

// Compares draws by `categorical` with the definition's.
void CheckDraws(const Row& row, const Categorical& categorical) {
  SCOPED_TRACE(testing::Message()
               << row.name << ", " << row.logits.size() << " columns, top_k "
               << categorical.top_k << ", top_p " << categorical.top_p
               << ", min_p " << categorical.min_p);
  const float max = Max(row.logits);
  const int32_t cols = static_cast<int32_t>(row.logits.size());
  const ColumnBlocks whole = Blocks(row.logits, 1);
  const PlainCategorical plain(
      row.logits, Weights(whole, max, categorical.inverse_temperature),
      categorical);
  VocabScratch scratch(cols);
  for (int draw = 0; draw < 8; ++draw) {
    const double u = draw == 0   ? 0
                     : draw == 1 ? std::nextafter(1.0, 0.0)
                                 : UniformDouble(cols, 3, draw);
    const int32_t token =
        SampleCategorical(whole, 1, max, categorical, u, scratch);
    ASSERT_EQ(token, plain.Draw(u)) << "u " << u;
    if (draw % 4 != 3) continue;
    for (int32_t blocks = 2; blocks <= 4; ++blocks) {
      ASSERT_EQ(SampleCategorical(Blocks(row.logits, blocks), 1, max,
                                  categorical, u, scratch),
                token);
    }
  }
}

TEST(SoftmaxWeightsTest, AreExponentials) {
  ForEachTarget([] {
    for (int32_t size : kSizes) {
      const std::vector<float> logits = Logits(size, size);
      const float max = Max(logits);
      const std::vector<float> weights = Weights(Blocks(logits, 2), max, 3.5f);
      for (int32_t i = 0; i < size; ++i) {
        // 1 ulp is at most 2^-23 of a number.
        const double expected = std::exp(double{(logits[i] - max) * 3.5f});
        ASSERT_NEAR(weights[i], expected, expected * 0x1p-23) << i;
      }
    }
  });
}

TEST(SoftmaxWeightsTest, GoDownToTheLeastNormalNumbers) {
  ForEachTarget([] {
    std::vector<float> logits(70000);
    for (size_t i = 0; i < logits.size(); ++i) {
      logits[i] = -static_cast<float>(i) / 800;
    }
    logits.back() = -kInfinity;
    const std::vector<float> weights = Weights(Blocks(logits, 1), 0, 1);
    EXPECT_EQ(weights[0], 1);
    EXPECT_EQ(weights.back(), 0);
    for (size_t i = 0; i + 1 < logits.size(); ++i) {
      const double expected = std::exp(double{logits[i]});
      if (logits[i] < -87) {
        ASSERT_EQ(weights[i], 0) << logits[i];
      } else {
        ASSERT_NEAR(weights[i], expected, expected * 0x1p-23) << logits[i];
      }
    }
  });
}

TEST(SampleCategoricalTest, IsTheDefinition) {
  ForEachTarget([] {
    for (int32_t size : kSizes) {
      for (const Row& row : Rows(size)) {
        CheckDraws(row, {.inverse_temperature = 0.7f});
        for (float min_p : {1e-9f, 0.01f, 0.5f, 1.0f}) {
          CheckDraws(row, {.inverse_temperature = 0.7f, .min_p = min_p});
          CheckDraws(row, {.top_k = 50, .min_p = min_p});
        }
        for (float top_p : {1e-9f, 0.1f, 0.5f, 0.9f, 0.9999f}) {
          CheckDraws(row, {.inverse_temperature = 0.7f, .top_p = top_p});
          CheckDraws(row, {.top_k = 50, .top_p = top_p});
          CheckDraws(row, {.top_p = top_p, .min_p = 0.05f});
        }
        for (int32_t top_k : {1, 2, 40, 3000, 60000}) {
          CheckDraws(row, {.inverse_temperature = 1.3f, .top_k = top_k});
        }
      }
    }
  });
}

TEST(SampleCategoricalTest, InvertsTheCumulativeSumInDoubles) {
  for (int32_t size : kSizes) {
    const std::vector<float> values = Logits(size + 1, size);
    const float max = Max(values);
    std::vector<double> cumulative(size);
    double total = 0;
    for (int32_t i = 0; i < size; ++i) {
      cumulative[i] = total += std::exp((double{values[i]} - max) * 0.7);
    }
    const ColumnBlocks logits = Blocks(values, 1);
    VocabScratch scratch(size);
    for (int32_t draw = 0; draw < (kSanitized ? 10 : 200); ++draw) {
      const double u = UniformDouble(size, 3, draw);
      const int32_t token = SampleCategorical(
          logits, 1, max, {.inverse_temperature = 0.7f}, u, scratch);
      // Each exponent, at most 17, is rounded twice, exp is off by 1 ulp, and
      // 0.7f by half of one: below 40 * 2^-24 of each weight. Rounding to
      // masses adds half of 2^-40 for each of at most 2^16 weights, and the sum
      // is at least 1.
      constexpr double kSlack = 40 * 0x1p-24 + 0x1p-25;
      EXPECT_GT(cumulative[token] / total, u - kSlack);
      if (token > 0) {
        EXPECT_LT(cumulative[token - 1] / total, u + kSlack);
      }
    }
  }
}

TEST(SampleCategoricalTest, NeverTakesWhatHasNoWeight) {
  // exp(-200) is 0 in f32. Only 1500 and 2700 have weight, a half each.
  std::vector<float> values(5000, -200.0f);
  values[1500] = 0;
  values[2700] = 0;
  const double last = std::nextafter(1.0, 0.0);
  VocabScratch scratch(5000);
  for (int32_t blocks = 1; blocks <= 4; ++blocks) {
    const ColumnBlocks logits = Blocks(values, blocks);
    for (const Categorical& categorical :
         {Categorical{}, Categorical{.top_k = 100}, Categorical{.top_p = 0.9f},
          Categorical{.top_k = 100, .top_p = 0.9f}}) {
      const auto draw = [&](double u) {
        return SampleCategorical(logits, 1, 0, categorical, u, scratch);
      };
      EXPECT_EQ(draw(0), 1500);
      EXPECT_EQ(draw(0.4999), 1500);
      EXPECT_EQ(draw(0.5), 2700);
      EXPECT_EQ(draw(last), 2700);
    }
  }
}

TEST(SampleCategoricalTest, OfEqualOnesTheFirstAreKept) {
  const std::vector<float> flat(100, 1.0f);
  VocabScratch scratch(100);
  const double last = std::nextafter(1.0, 0.0);
  const ColumnBlocks logits = Blocks(flat, 1);
  EXPECT_EQ(SampleCategorical(logits, 1, 1, {.top_k = 7}, last, scratch), 6);
  EXPECT_EQ(SampleCategorical(logits, 1, 1, {.top_p = 0.5f}, last, scratch),
            49);
  // Three quarters of the eight that top_k leaves.
  EXPECT_EQ(SampleCategorical(logits, 1, 1, {.top_k = 8, .top_p = 0.75f}, last,
                              scratch),
            5);
  EXPECT_EQ(SampleCategorical(logits, 1, 1, {.top_p = 1e-30f}, last, scratch),
            0);
}

}  // namespace
}  // namespace folio
