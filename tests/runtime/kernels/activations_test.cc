#include "runtime/kernels/activations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/runtime/kernels/each_target.h"
#include "tests/runtime/kernels/matrices.h"
#include "tests/support/random_floats.h"

namespace folio {
namespace {

constexpr int32_t kWidths[] = {1, 2, 15, 16, 31, 32, 33, 64, 100, 577};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const int8_t* Codes(const Activations& matrix, int32_t row) {
  return reinterpret_cast<const int8_t*>(matrix.row(row));
}

TEST(ActivationsTest, Int8IsNearestWithTheScaleOfTheGreatest) {
  ForEachTarget([] {
    for (const int32_t cols : kWidths) {
      Activations matrix(ElementType::kInt8, 3, cols, /*num_workers=*/1);
      for (int32_t row = 0; row < 3; ++row) {
        const std::vector<float> x =
            RandomFloats(10 + row, cols, std::pow(10.0f, row - 1));
        SetRows(matrix, row, x);
        float greatest = 0;
        for (const float value : x) {
          greatest = std::max(greatest, std::abs(value));
        }
        EXPECT_EQ(matrix.scales()[row], greatest / 127);
        for (int32_t i = 0; i < cols; ++i) {
          // Half a step, and two roundings of f32 of at most 127 steps.
          ASSERT_NEAR(Codes(matrix, row)[i], x[i] / double{greatest} * 127,
                      0.5 + 127 * 0x1p-23);
        }
      }
    }
  });
}

TEST(ActivationsTest, Int8KeepsSumsAndPadsWithZeros) {
  ForEachTarget([] {
    for (const int32_t cols : kWidths) {
      Activations matrix(ElementType::kInt4, 2, cols, /*num_workers=*/1);
      SetRows(matrix, 0, RandomFloats(1, size_t{2} * cols, 1));
      ASSERT_EQ(matrix.row_bytes(), size_t(matrix.num_groups()) * 32);
      for (int32_t row = 0; row < 2; ++row) {
        int32_t total = 0;
        for (int32_t group = 0; group < matrix.num_groups(); ++group) {
          int32_t sum = 0;
          for (int32_t i = group * 32; i < (group + 1) * 32; ++i) {
            if (i >= cols) {
              ASSERT_EQ(Codes(matrix, row)[i], 0);
            }
            sum += Codes(matrix, row)[i];
          }
          EXPECT_EQ(matrix.group_sums(row)[group], sum);
          total += sum;
        }
        EXPECT_EQ(matrix.row_sums()[row], total);
      }
    }
  });
}

TEST(ActivationsTest, Int8OfWhatIsNoNumberHasAScaleThatIsNone) {
  ForEachTarget([] {
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      for (const int32_t place : {0, 17, 39}) {
        Activations matrix(ElementType::kInt8, 1, 40, /*num_workers=*/1);
        std::vector<float> x = RandomFloats(1, 40, 1);
        x[place] = bad;
        SetRows(matrix, 0, x);
        EXPECT_TRUE(std::isnan(matrix.scales()[0])) << bad << " at " << place;
      }
    }
  });
}

TEST(ActivationsTest, Int8OfNextToNothingIsZero) {
  ForEachTarget([] {
    for (const float tiny : {0.0f, -0.0f, 1e-31f, 1e-45f}) {
      Activations matrix(ElementType::kInt8, 1, 3, /*num_workers=*/1);
      SetRows(matrix, 0, std::vector<float>{tiny, -tiny, 0});
      EXPECT_EQ(Values(matrix, 1), std::vector<float>(3, 0.0f));
    }
  });
}

}  // namespace
}  // namespace folio
