#include "runtime/kernels/column_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace folio {
namespace {

using testing::ElementsAre;

TEST(ColumnBlocksTest, EvenCutsAreMultiplesAndNearlyEqual) {
  EXPECT_THAT(ColumnBlocks::EvenCuts(576, 2), ElementsAre(0, 288, 576));
  EXPECT_THAT(ColumnBlocks::EvenCuts(64, 1), ElementsAre(0, 64));
  // 3142 pieces of 16 columns, the last of them one column wide.
  EXPECT_THAT(ColumnBlocks::EvenCuts(50257, 2), ElementsAre(0, 25136, 50257));
  // Too narrow for four blocks: three pieces of 16.
  EXPECT_THAT(ColumnBlocks::EvenCuts(33, 4), ElementsAre(0, 16, 32, 33));
  EXPECT_THAT(ColumnBlocks::EvenCuts(5, 4), ElementsAre(0, 5));
}

TEST(ColumnBlocksTest, BlocksAreDenseAlignedAndReadableAcrossCuts) {
  ColumnBlocks matrix(3, {0, 16, 48, 53});
  ASSERT_EQ(matrix.num_blocks(), 3);
  ASSERT_EQ(matrix.cols(), 53);
  for (int32_t b = 0; b < 3; ++b) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(matrix.block_data(b)) % 64, 0u);
    for (int32_t r = 0; r < 3; ++r) {
      for (int32_t c = 0; c < matrix.block_cols(b); ++c) {
        matrix.block_data(b)[r * matrix.block_cols(b) + c] =
            static_cast<float>(100 * r + matrix.first_column(b) + c);
      }
    }
  }
  for (int32_t r = 0; r < 3; ++r) {
    for (int32_t c = 0; c < 53; ++c) EXPECT_EQ(matrix.at(r, c), 100 * r + c);
  }
  std::vector<float> part(40);
  matrix.CopyRow(2, 10, part);
  for (int32_t i = 0; i < 40; ++i) EXPECT_EQ(part[i], 210 + i);
  EXPECT_THAT(matrix.Row(2, 1), ElementsAre(148, 149, 150, 151, 152));
  EXPECT_THAT(matrix.RowFrom(1, 48), ElementsAre(148, 149, 150, 151, 152));
  EXPECT_THAT(matrix.RowFrom(2, 46), ElementsAre(246, 247));
  EXPECT_THAT(matrix.RowFrom(0, 15), ElementsAre(15));
  EXPECT_THAT(matrix.RowFrom(0, 52), ElementsAre(52));
  EXPECT_EQ(matrix.RowFrom(1, 0).size(), 16u);
}

}  // namespace
}  // namespace folio
