#include "runtime/kernels/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "runtime/base/philox.h"
#include "tests/runtime/kernels/matrices.h"
#include "tests/support/sanitized.h"
#include "tests/support/test_executors.h"

namespace folio {
namespace {

using Kind = RopeScaling::Kind;

// The scaling of Llama 3.1.
constexpr RopeScaling kLlama31{.kind = Kind::kLlama3,
                               .factor = 8,
                               .low_freq_factor = 1,
                               .high_freq_factor = 4,
                               .original_context = 8192};

void ExpectNear(const std::vector<double>& frequencies,
                const std::vector<double>& expected) {
  ASSERT_EQ(frequencies.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    // std::pow and a few operations of double precision.
    EXPECT_NEAR(frequencies[i], expected[i], 1e-14 * expected[i])
        << "pair " << i;
  }
}

TEST(RopeFrequenciesTest, HandComputedValues) {
  ExpectNear(RopeFrequencies(8, 10000, {}), {1, 0.1, 0.01, 0.001});
  ExpectNear(RopeFrequencies(8, 10000, {.kind = Kind::kLinear, .factor = 4}),
             {0.25, 0.025, 0.0025, 0.00025});
  // The wave of frequency 1e-3 fits into 8192 positions 8.192 / (2 pi) =
  // 1.3037... times: it keeps (1.3037... - 1) / 3 of its frequency and gives
  // up 7/8 of the rest. Those before it are high, those after it low.
  const double share = (8.192 / (2 * std::numbers::pi) - 1) / 3;
  EXPECT_NEAR(share, 0.1012657, 1e-6);
  ExpectNear(RopeFrequencies(12, 1e6, kLlama31),
             {1, 0.1, 0.01, 0.000125 + share * 0.000875, 1.25e-5, 1.25e-6});
}

// Each frequency as a wavelength, as the model card's own code has it.
TEST(RopeFrequenciesTest, Llama3AgreesWithWavelengths) {
  constexpr int32_t kDim = 128;
  const std::vector<double> frequencies =
      RopeFrequencies(kDim, 500000, kLlama31);
  ASSERT_EQ(frequencies.size(), kDim / 2u);
  int high = 0;
  int low = 0;
  for (int32_t i = 0; i < kDim / 2; ++i) {
    const long double wave = 2 * std::numbers::pi_v<long double> *
                             std::pow(500000.0L, 2.0L * i / kDim);
    long double stretched = wave * 8;
    if (wave < 8192.0L / 4) {
      stretched = wave;
      ++high;
    } else if (wave <= 8192.0L / 1) {
      const long double smooth = (8192 / wave - 1) / (4 - 1);
      stretched = wave / ((1 - smooth) / 8 + smooth);
    } else {
      ++low;
    }
    const double expected =
        static_cast<double>(2 * std::numbers::pi_v<long double> / stretched);
    EXPECT_NEAR(frequencies[i], expected, 1e-14 * expected) << "pair " << i;
  }
  EXPECT_GT(high, 0);
  EXPECT_GT(low, 0);
  EXPECT_LT(high + low, kDim / 2);
}

// Checks one row against the frequencies' sines in long double.
void ExpectTurned(const Rotary& rotary, std::span<const double> frequencies,
                  int32_t row, int32_t position) {
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const long double angle =
        static_cast<long double>(frequencies[i]) * position;
    // Two angles that were rounded in double precision, a few operations in
    // it, and half a unit of the last place of a float.
    const double wide = (static_cast<double>(angle) + 8) * 0x1p-53;
    const auto bound = [&](long double exact) {
      const float value = std::abs(static_cast<float>(exact));
      return wide + (std::nextafter(value, 2.0f) - value) / 2;
    };
    ASSERT_NEAR(rotary.cosines(row)[i], std::cos(angle), bound(std::cos(angle)))
        << "position " << position << " pair " << i;
    ASSERT_NEAR(rotary.sines(row)[i], std::sin(angle), bound(std::sin(angle)))
        << "position " << position << " pair " << i;
  }
}

TEST(RotaryTest, AgreesWithLongDoubleUpToTheLastPosition) {
  constexpr int32_t kContext = 131072;
  const std::vector<double> frequencies = RopeFrequencies(64, 10000, {});
  std::vector<int32_t> positions = {
      0, 1, 255, 256, 257, 511, 512, 65535, kContext - 2, kContext - 1};
  for (int32_t i = 0; i < (kSanitized ? 50 : 2000); ++i) {
    positions.push_back(
        static_cast<int32_t>(PhiloxAt(/*seed=*/2, 0, i)[0] % kContext));
  }
  Rotary rotary(frequencies, kContext, static_cast<int32_t>(positions.size()));
  ASSERT_EQ(rotary.num_pairs(), 32);
  SerialExecutor executor;
  rotary.SetPositions(positions, executor);
  for (size_t row = 0; row < positions.size(); ++row) {
    ExpectTurned(rotary, frequencies, static_cast<int32_t>(row),
                 positions[row]);
  }
}

// Tables end where the context does, whatever it is a multiple of.
TEST(RotaryTest, ReachesTheEndOfAnyContext) {
  const std::vector<double> frequencies = RopeFrequencies(6, 10000, {});
  SerialExecutor executor;
  for (int32_t context : {1, 2, 255, 256, 257, 1000}) {
    Rotary rotary(frequencies, context, 1);
    const int32_t last = context - 1;
    rotary.SetPositions({&last, 1}, executor);
    ExpectTurned(rotary, frequencies, 0, last);
  }
}

TEST(RotaryTest, RowsDoNotDependOnTheBatch) {
  constexpr int32_t kRows = 45;
  const std::vector<double> frequencies = RopeFrequencies(14, 10000, {});
  std::vector<int32_t> positions(kRows);
  for (int32_t i = 0; i < kRows; ++i) positions[i] = i * i % 1000;
  Rotary all(frequencies, 1000, kRows);
  const auto parallel = MakeParallelTestExecutor(2);
  all.SetPositions(positions, *parallel);
  Rotary alone(frequencies, 2000, 3);
  SerialExecutor serial;
  const size_t pairs = frequencies.size();
  for (int32_t row = 0; row < kRows; ++row) {
    alone.SetPositions({&positions[row], 1}, serial);
    EXPECT_TRUE(SameBits({all.cosines(row), pairs}, {alone.cosines(0), pairs}));
    EXPECT_TRUE(SameBits({all.sines(row), pairs}, {alone.sines(0), pairs}));
  }
}

}  // namespace
}  // namespace folio
