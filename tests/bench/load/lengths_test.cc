#include "bench/load/lengths.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/load/load.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/philox.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int32_t kCount = 20000;

std::vector<int32_t> Draw(const Length& length, uint64_t seed = 1,
                          uint64_t stream = 0) {
  std::vector<int32_t> lengths;
  for (int32_t i = 0; i < kCount; ++i) {
    lengths.push_back(DrawLength(length, seed, stream, i));
  }
  return lengths;
}

TEST(DrawLengthTest, Fixed) { EXPECT_THAT(Draw(FixedLength{128}), Each(128)); }

TEST(DrawLengthTest, UniformHasEachLengthAsOften) {
  std::vector<int> counts(8, 0);
  for (const int32_t length : Draw(UniformLength{.least = 3, .most = 10})) {
    ASSERT_GE(length, 3);
    ASSERT_LE(length, 10);
    ++counts[length - 3];
  }
  // Binomial: 2500, with a standard deviation of sqrt(20000 * 7) / 8 = 47.
  for (const int count : counts) EXPECT_NEAR(count, 2500, 5 * 47);
  EXPECT_THAT(Draw(UniformLength{.least = 7, .most = 7}), Each(7));
}

TEST(DrawLengthTest, UniformOverAllThereAre) {
  double sum = 0;
  for (const int32_t length :
       Draw(UniformLength{.least = 1, .most = INT32_MAX})) {
    ASSERT_GE(length, 1);
    sum += length;
  }
  // 2^30, with a standard error of 2^31 / sqrt(12 * 20000).
  EXPECT_NEAR(sum / kCount, 0x1p30, 5 * 0x1p31 / std::sqrt(12.0 * kCount));
}

TEST(DrawLengthTest, LogNormalHasItsQuantiles) {
  std::vector<int32_t> lengths =
      Draw(LogNormalLength{.median = 150, .sigma = 0.5, .most = 100000});
  // At the median and at the quantile Phi(1) = 0.8413 of a normal of sigma 0.5,
  // the standard errors are 0.5 * 1.25 / sqrt(20000) = 0.0044 and 0.0054 of it;
  // five of them are allowed.
  std::ranges::sort(lengths);
  EXPECT_NEAR(lengths[kCount / 2], 150, 150 * 0.022);
  EXPECT_NEAR(lengths[kCount * 8413 / 10000], 150 * std::exp(0.5),
              150 * std::exp(0.5) * 0.027);
}

TEST(DrawLengthTest, LogNormalIsCut) {
  const std::vector<int32_t> lengths =
      Draw(LogNormalLength{.median = 200, .sigma = 0.9, .most = 2000});
  EXPECT_GE(*std::ranges::min_element(lengths), 1);
  EXPECT_EQ(*std::ranges::max_element(lengths), 2000);
  // P(normal > ln(10) / 0.9) = 0.00526: 105 of 20000, with a standard deviation
  // of 10.
  EXPECT_NEAR(std::ranges::count(lengths, 2000), 105, 50);

  // Half of them would be below 1; and without a sigma all are the median.
  const std::vector<int32_t> small =
      Draw(LogNormalLength{.median = 1, .sigma = 3, .most = 5});
  EXPECT_EQ(*std::ranges::min_element(small), 1);
  EXPECT_EQ(*std::ranges::max_element(small), 5);
  EXPECT_THAT(Draw(LogNormalLength{.median = 41.4, .sigma = 0, .most = 50}),
              Each(41));
}

TEST(DrawLengthTest, IsAFunctionOfSeedStreamAndIndex) {
  for (const Length& length : {Length(UniformLength{1, 1000}),
                               Length(LogNormalLength{100, 1, 9999})}) {
    SCOPED_TRACE(ToString(length));
    EXPECT_EQ(Draw(length, 1, 2), Draw(length, 1, 2));
    EXPECT_NE(Draw(length, 1, 2), Draw(length, 1, 3));
    EXPECT_NE(Draw(length, 1, 2), Draw(length, 4, 2));
  }
}

TEST(ParseLengthTest, ReadsEachKind) {
  EXPECT_EQ(*ParseLength("128"), Length(FixedLength{128}));
  EXPECT_EQ(*ParseLength("16777216"), Length(FixedLength{kMaxTokens}));
  EXPECT_EQ(*ParseLength("uniform:10-200"), Length(UniformLength{10, 200}));
  EXPECT_EQ(*ParseLength("uniform:7-7"), Length(UniformLength{7, 7}));
  EXPECT_EQ(*ParseLength("lognormal:200,0.9,2000"),
            Length(LogNormalLength{200, 0.9, 2000}));
  EXPECT_EQ(*ParseLength("lognormal:1e2,0,1"),
            Length(LogNormalLength{100, 0, 1}));
}

TEST(ParseLengthTest, SaysWhatIsWrong) {
  constexpr char kWhole[] = "a whole number from 1 to 16777216";
  const std::pair<const char*, std::string> cases[] = {
      {"", absl::StrCat("it must be ", kWhole)},
      {"0", absl::StrCat("it must be ", kWhole)},
      {"-5", absl::StrCat("it must be ", kWhole)},
      {"16777217", absl::StrCat("it must be ", kWhole)},
      {"12.5", absl::StrCat("it must be ", kWhole)},
      {" 12", absl::StrCat("it must be ", kWhole)},
      {"12 ", absl::StrCat("it must be ", kWhole)},
      {"normal:3,4", absl::StrCat("it must be ", kWhole)},
      {"Uniform:3-4", absl::StrCat("it must be ", kWhole)},
      {"uniform:", "there is no '-' in it"},
      {"uniform:10,20", "there is no '-' in it"},
      {"uniform:-20", absl::StrCat("the least must be ", kWhole)},
      {"uniform:0-20", absl::StrCat("the least must be ", kWhole)},
      {"uniform:10-", absl::StrCat("the most must be ", kWhole)},
      {"uniform:10-20-30", absl::StrCat("the most must be ", kWhole)},
      {"uniform:200-10", "the least, 200, is more than the most, 10"},
      {"lognormal:200", "there are not three numbers in it"},
      {"lognormal:200,0.9", "there are not three numbers in it"},
      {"lognormal:200,0.9,2000,1", "there are not three numbers in it"},
      {"lognormal:0.5,0.9,2000",
       "the median must be a number from 1 to 16777216"},
      {"lognormal:nan,0.9,2000",
       "the median must be a number from 1 to 16777216"},
      {"lognormal:inf,0.9,2000",
       "the median must be a number from 1 to 16777216"},
      {"lognormal:,0.9,2000", "the median must be a number from 1 to 16777216"},
      {"lognormal:200,-0.1,2000", "sigma must be a number from 0 to 10"},
      {"lognormal:200,11,2000", "sigma must be a number from 0 to 10"},
      {"lognormal:200,x,2000", "sigma must be a number from 0 to 10"},
      {"lognormal:200,0.9,0", absl::StrCat("the most must be ", kWhole)},
      {"lognormal:200,0.9,1.5", absl::StrCat("the most must be ", kWhole)},
  };
  for (const auto& [text, reason] : cases) {
    const absl::StatusOr<Length> length = ParseLength(text);
    EXPECT_EQ(length.status().code(), absl::StatusCode::kInvalidArgument)
        << text;
    EXPECT_THAT(length.status().message(),
                AllOf(HasSubstr(absl::StrCat("\"", text,
                                             "\" is not a length: ", reason)),
                      HasSubstr("uniform:LEAST-MOST"),
                      HasSubstr("lognormal:MEDIAN,SIGMA,MOST")));
  }
}

TEST(ToStringOfLengthTest, ParsesToTheSameLength) {
  EXPECT_EQ(ToString(LogNormalLength{200, 0.9, 2000}),
            "lognormal:200,0.9,2000");
  for (uint64_t i = 0; i < 1000; ++i) {
    const auto draw = [&](uint64_t stream) {
      return 1 + static_cast<int32_t>(UniformDouble(9, stream, i) * 1.6e7);
    };
    const int32_t a = draw(0);
    const int32_t b = draw(1);
    const double exponent = UniformDouble(9, 2, i);
    for (const Length& length :
         {Length(FixedLength{a}),
          Length(UniformLength{std::min(a, b), std::max(a, b)}),
          Length(
              LogNormalLength{std::pow(1.6e7, exponent), 10 * exponent, b})}) {
      const absl::StatusOr<Length> parsed = ParseLength(ToString(length));
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_EQ(*parsed, length) << ToString(length);
    }
  }
}

TEST(DescribeLengthTest, IsForPeople) {
  EXPECT_EQ(Describe(FixedLength{128}), "128");
  EXPECT_EQ(Describe(UniformLength{10, 200}), "10 to 200");
  EXPECT_EQ(Describe(LogNormalLength{200, 0.9, 2000}),
            "log-normal, median 200, sigma 0.9, at most 2000");
}

}  // namespace
}  // namespace folio
