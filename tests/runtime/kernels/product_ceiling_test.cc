#include "runtime/kernels/product_ceiling.h"

#include <gtest/gtest.h>

#include "runtime/base/executor.h"

namespace folio {
namespace {

// 1 MB/s, so slow that no product takes longer than reading its weights: that
// of a row would have to take a tenth of a second.
constexpr double kSlow = 1e6;
// So fast that reading takes no time.
constexpr double kFast = 1e30;

TEST(ProductCeilingTest, KnowsTheNamesOfTypes) {
  EXPECT_EQ(CeilingTypeOf("f32"), CeilingType::kF32);
  EXPECT_EQ(CeilingTypeOf("bf16"), CeilingType::kBf16);
  EXPECT_EQ(CeilingTypeOf("int8"), CeilingType::kInt8);
  EXPECT_EQ(CeilingTypeOf("int4"), CeilingType::kInt4);
  EXPECT_EQ(CeilingTypeOf("auto"), std::nullopt);
}

// Shapes that no slice divides, more workers than columns, and row counts that
// grow and shrink.
TEST(ProductCeilingTest, RunsAnyShape) {
  const auto executor = MakeParallelExecutor(2);
  for (const CeilingType type : {CeilingType::kF32, CeilingType::kBf16,
                                 CeilingType::kInt8, CeilingType::kInt4}) {
    if (!ProductCeiling::IsPossible(type)) continue;
    ProductCeiling ceiling({{64, 1}, {33, 70}}, /*num_layers=*/3, {33, 1000},
                           type, executor.get());
    for (const int32_t rows : {5, 1, 64, 5}) {
      EXPECT_GT(ceiling.LayersSeconds(rows, /*last_rows=*/rows, kFast), 0);
      EXPECT_GT(ceiling.LayersSeconds(rows, /*last_rows=*/0, kFast), 0);
      EXPECT_GT(ceiling.HeadSeconds(rows, kFast), 0);
    }
  }
}

// No kernel of 4 bits is measured, so where reading is slow the bytes alone
// decide, whatever the number of rows.
TEST(ProductCeilingTest, Int4IsBoundByItsBytes) {
  if (!ProductCeiling::IsPossible(CeilingType::kInt4)) {
    GTEST_SKIP() << "oneDNN has no 8-bit product here";
  }
  SerialExecutor executor;
  ProductCeiling ceiling({{1024, 96}, {96, 2048}}, /*num_layers=*/2,
                         {1024, 320}, CeilingType::kInt4, &executor);
  constexpr double kBytesPerWeight = 4.5 / 8;
  constexpr double kLayers = 2 * (1024 * 96 + 96 * 2048) * kBytesPerWeight;
  constexpr double kHead = 1024 * 320 * kBytesPerWeight;
  EXPECT_DOUBLE_EQ(ceiling.LayersSeconds(1, 1, kSlow), kLayers / (kSlow));
  // The last layer's second product has no rows then.
  constexpr double kFewer = kLayers - 96 * 2048 * kBytesPerWeight;
  EXPECT_DOUBLE_EQ(ceiling.LayersSeconds(1, 0, kSlow), kFewer / (kSlow));
  EXPECT_DOUBLE_EQ(ceiling.HeadSeconds(1, kSlow), kHead / (kSlow));
}

TEST(ReadCeilingTest, TakesTime) {
  for (const int workers : {1, 2, 3}) {
    const auto executor = MakeParallelExecutor(workers);
    ReadCeiling reading(executor.get());
    EXPECT_GT(reading.bytes(), int64_t{1} << 27);
    EXPECT_GT(reading.Seconds(), 0);
  }
}

}  // namespace
}  // namespace folio
