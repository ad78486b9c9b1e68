#include "cache/kv_layout.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace folio {
namespace {

TEST(KvShape, FollowsTheFormula) {
  // 2 x 32 layers x 32 heads x 128 x 2 bytes = 524,288 bytes a token, which at
  // 4,096 tokens is 2 GiB.
  const KvShape shape = {.num_layers = 32,
                         .num_kv_heads = 32,
                         .head_dim = 128,
                         .bytes_per_element = 2};
  EXPECT_EQ(shape.BytesPerToken(), 524'288);
  EXPECT_EQ(shape.Bytes(1, 4096), int64_t{2} << 30);
  EXPECT_EQ(shape.Bytes(16, 4096), int64_t{32} << 30);

  // 2 x 2 x 4 x 16 x 4.
  const KvShape tiny = {.num_layers = 2, .num_kv_heads = 4, .head_dim = 16};
  EXPECT_EQ(tiny.BytesPerToken(), 1024);
}

TEST(KvLayout, PadsPartsToCacheLines) {
  // 2 x 3 x 4 = 24 bytes a token, layer and head; 5 tokens 120; the next line
  // ends at 128. 2 x 3 such parts.
  const KvLayout odd({.num_layers = 2, .num_kv_heads = 3, .head_dim = 3}, 5);
  EXPECT_EQ(odd.num_parts(), 6);
  EXPECT_EQ(odd.part_bytes(), 128);
  EXPECT_EQ(odd.page_bytes(), 768);
  EXPECT_EQ(odd.padding_bytes(), 48);

  const KvLayout even({.num_layers = 2, .num_kv_heads = 4, .head_dim = 16}, 16);
  EXPECT_EQ(even.part_bytes(), 2048);
  EXPECT_EQ(even.page_bytes(), 16 * 1024);
  EXPECT_EQ(even.padding_bytes(), 0);
}

TEST(KvLayout, ScalesAreBesideTheFormula) {
  const KvShape shape = {.num_layers = 2,
                         .num_kv_heads = 3,
                         .head_dim = 5,
                         .bytes_per_element = 1,
                         .scale_bytes = 4};
  // 2 x 2 x 3 x 5 x 1, and a scale for each five elements.
  EXPECT_EQ(shape.BytesPerToken(), 60);
  EXPECT_EQ(shape.ScaleBytesPerToken(), 48);
  EXPECT_EQ(shape.Bytes(2, 10), 1200);
  // 7 tokens have 420 bytes, and 336 of scales. A part has rows of 5 bytes,
  // which take 8 each: 112, and 56 of scales; the next line ends at 192.
  const KvLayout layout(shape, 7);
  EXPECT_EQ(layout.scale_bytes(), 336);
  EXPECT_EQ(layout.part_bytes(), 192);
  EXPECT_EQ(layout.page_bytes(), 1152);
  EXPECT_EQ(layout.padding_bytes(), 396);
  // An array of 7 x 8 bytes, and another; 7 floats, and 7.
  EXPECT_EQ(layout.KeyOffset(), 0);
  EXPECT_EQ(layout.ValueOffset(), 56);
  EXPECT_EQ(layout.KeyScaleOffset(), 112);
  EXPECT_EQ(layout.ValueScaleOffset(), 140);  // Ends at 168.
}

TEST(KvLayout, CountsPages) {
  const KvLayout layout({.num_layers = 1, .num_kv_heads = 1, .head_dim = 1},
                        16);
  EXPECT_EQ(layout.PagesFor(0), 0);
  EXPECT_EQ(layout.PagesFor(1), 1);
  EXPECT_EQ(layout.PagesFor(16), 1);
  EXPECT_EQ(layout.PagesFor(17), 2);
  EXPECT_EQ(layout.PagesFor(std::numeric_limits<int64_t>::max()),
            int64_t{1} << 59);
}

TEST(KvLayoutDeath, RefusesShapesWithoutSense) {
  const KvShape good = {.num_layers = 1, .num_kv_heads = 1, .head_dim = 1};
  EXPECT_DEATH(KvLayout(good, 0), "> 0");
  EXPECT_DEATH(
      KvLayout({.num_layers = -1, .num_kv_heads = 1, .head_dim = 1}, 1), "> 0");
  EXPECT_DEATH(KvLayout({.num_layers = 1, .num_kv_heads = 0, .head_dim = 1}, 1),
               "> 0");
  const int32_t max = std::numeric_limits<int32_t>::max();
  EXPECT_DEATH(
      KvLayout({.num_layers = max, .num_kv_heads = max, .head_dim = max}, 1),
      "more than 2\\^63 bytes");
}

}  // namespace
}  // namespace folio
