#include "runtime/base/recycled_vector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace folio {
namespace {

struct Row {
  std::vector<int> values;
  void Clear() { values.clear(); }
};

TEST(RecycledVector, KeepsTheMemoryOfClearedElements) {
  RecycledVector<Row> rows;
  rows.Append().values.assign(1000, 7);
  rows.Append().values.assign(10, 8);
  ASSERT_EQ(rows.size(), 2u);
  const int* memory = rows[0].values.data();

  rows.Clear();
  EXPECT_TRUE(rows.empty());
  Row& again = rows.Append();
  EXPECT_THAT(again.values, ::testing::IsEmpty());
  again.values.assign(1000, 9);
  EXPECT_EQ(again.values.data(), memory);
  EXPECT_EQ(rows.size(), 1u);
}

TEST(RecycledVector, IteratesOverLiveElementsOnly) {
  RecycledVector<Row> rows;
  for (int i = 0; i < 4; ++i) rows.Append().values = {-1};
  rows.Clear();
  for (int i = 0; i < 2; ++i) rows.Append().values = {i};
  int expected = 0;
  for (const Row& row : rows) EXPECT_EQ(row.values.at(0), expected++);
  EXPECT_EQ(expected, 2);
  EXPECT_EQ(rows.back().values.at(0), 1);
  EXPECT_THAT(rows.Append().values, ::testing::IsEmpty());
}

}  // namespace
}  // namespace folio
