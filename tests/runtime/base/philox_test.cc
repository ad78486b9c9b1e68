#include "runtime/base/philox.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace folio {
namespace {

// The three vectors for "philox4x32 10" in Random123's kat_vectors.
static_assert(Philox4x32({0, 0}, {0, 0, 0, 0}) ==
              PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(Philox4x32({0xffffffff, 0xffffffff},
                         {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}) ==
              PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(Philox4x32({0xa4093822, 0x299f31d0},
                         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
              PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(Philox, PutsSeedStreamAndPositionIntoKeyAndCounter) {
  EXPECT_EQ(
      PhiloxAt(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
      (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EachOfSeedStreamAndPositionChangesAboutHalfOfTheBits) {
  const PhiloxBlock base = PhiloxAt(1, 2, 3);
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t flip = uint64_t{1} << bit;
    for (const PhiloxBlock& other :
         {PhiloxAt(1 ^ flip, 2, 3), PhiloxAt(1, 2 ^ flip, 3),
          PhiloxAt(1, 2, 3 ^ flip)}) {
      int changed = 0;
      for (int i = 0; i < 4; ++i) changed += std::popcount(base[i] ^ other[i]);
      // Of 128 fair coins, 64 +- 6 standard deviations of 5.66: 30 to 98. The
      // values are fixed, so this can't fail by chance.
      EXPECT_GT(changed, 30) << "bit " << bit;
      EXPECT_LT(changed, 98) << "bit " << bit;
    }
  }
}

TEST(UniformDouble, ScalesTheUpperBits) {
  // From the vector of zeros: 0x6627e8d5 and 0xe169c58d.
  EXPECT_EQ(UniformDouble(0, 0, 0),
            static_cast<double>(0x6627e8d5e169c58d >> 11) / 9007199254740992.0);
}

TEST(UniformDouble, FillsTheUnitIntervalEvenly) {
  constexpr int kNumBuckets = 16;
  constexpr int kPerBucket = 4096;
  std::vector<int> counts(kNumBuckets);
  for (int i = 0; i < kNumBuckets * kPerBucket; ++i) {
    const double u = UniformDouble(7, 2, i);
    ASSERT_TRUE(u >= 0 && u < 1) << u;
    ++counts[static_cast<int>(u * kNumBuckets)];
  }
  for (int bucket = 0; bucket < kNumBuckets; ++bucket) {
    // A bucket's standard deviation is sqrt(4096 * 15 / 16) = 62; five of them.
    EXPECT_NEAR(counts[bucket], kPerBucket, 310) << bucket;
  }
}

}  // namespace
}  // namespace folio
