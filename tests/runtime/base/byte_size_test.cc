#include "runtime/base/byte_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "absl/strings/str_cat.h"

namespace folio {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;
constexpr int64_t kGiB = 1024 * kMiB;
constexpr int64_t kTiB = 1024 * kGiB;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(ParseByteSize, AcceptsNumbersAndUnits) {
  const struct {
    const char* text;
    int64_t bytes;
  } kCases[] = {
      {"0", 0},
      {"4096", 4096},
      {"007", 7},
      {"12B", 12},
      {"1KiB", kKiB},
      {"256MiB", 256 * kMiB},
      {"3GiB", 3 * kGiB},
      {"2TiB", 2 * kTiB},
      {"1KB", 1000},
      {"5MB", 5'000'000},
      {"7GB", 7'000'000'000},
      {"1TB", 1'000'000'000'000},
      {"1.5GiB", 3 * kGiB / 2},
      {"0.5KiB", 512},
      {"1.25KB", 1250},
      {"0.1KiB", 102},  // 102.4
      {"0.000000000000000001TiB", 0},
      {"9223372036854775807", kMax},
      {"8388607.999999TiB", 9223372036853676296},  // 2^63 - 1099511.6
  };
  for (const auto& [text, bytes] : kCases) {
    const auto parsed = ParseByteSize(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status();
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(ParseByteSize, RefusesEverythingElse) {
  const struct {
    const char* text;
    const char* why;
  } kCases[] = {
      {"", "does not start with a digit"},
      {"-1", "does not start with a digit"},
      {"+1", "does not start with a digit"},
      {" 1", "does not start with a digit"},
      {".5GiB", "does not start with a digit"},
      {"MiB", "does not start with a digit"},
      {"1 MiB", "unknown unit ' MiB'"},
      {"1mib", "unknown unit 'mib'"},
      {"1M", "unknown unit 'M'"},
      {"1PiB", "unknown unit 'PiB'"},
      {"1MiBB", "unknown unit 'MiBB'"},
      {"1e3", "unknown unit 'e3'"},
      {"0x10", "unknown unit 'x10'"},
      {"1.GiB", "no digit follows the point"},
      {"1.2.3GiB", "unknown unit '.3GiB'"},
      {"1.5", "fraction of a byte"},
      {"1.0B", "fraction of a byte"},
      {"1.0000000000000000000GiB", "more than 18 digits"},
      {"9223372036854775808", "too large"},
      {"8388608TiB", "too large"},
      {"18446744073709551617", "too large"},
      {"99999999999999999999999999999999999999999", "too large"},
  };
  for (const auto& [text, why] : kCases) {
    const auto parsed = ParseByteSize(text);
    ASSERT_FALSE(parsed.ok()) << text << " gave " << *parsed;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string message(parsed.status().message());
    EXPECT_THAT(message, HasSubstr(why));
    EXPECT_THAT(message, HasSubstr(absl::StrCat("'", text, "'")));
    EXPECT_THAT(message, HasSubstr("256MiB")) << "says what is allowed";
  }
}

TEST(FormatByteSize, UsesTheLargestUnitReached) {
  const struct {
    int64_t bytes;
    const char* text;
  } kCases[] = {
      {0, "0B"},
      {1023, "1023B"},
      {kKiB, "1KiB"},
      {kKiB + 1, "1.0KiB"},
      {1536, "1.5KiB"},
      {256 * kMiB, "256MiB"},
      {256 * kMiB + 1, "256.0MiB"},
      {kGiB + kGiB / 5, "1.2GiB"},
      {kMiB - 52, "1023.9KiB"},  // 1023.9492...
      {kMiB - 51, "1.0MiB"},     // 1023.9502...
      {1023 * kKiB, "1023KiB"},
      {kMax, "8388608.0TiB"},
  };
  for (const auto& [bytes, text] : kCases) {
    EXPECT_EQ(FormatByteSize(bytes), text) << bytes;
  }
  EXPECT_DEATH(FormatByteSize(-1), "bytes >= 0");
}

TEST(FormatByteSize, ParsesBackExactlyOrWithinHalfATenth) {
  std::mt19937_64 random(20240601);
  for (int i = 0; i < 10'000; ++i) {
    const int64_t bytes = static_cast<int64_t>(random() >> (1 + random() % 62));
    SCOPED_TRACE(bytes);
    const std::string text = FormatByteSize(bytes);
    // The largest text, 8388608.0TiB, is one more than the largest size.
    if (text == "8388608.0TiB") continue;
    const auto parsed = ParseByteSize(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    if (text.find('.') == text.npos) {
      EXPECT_EQ(*parsed, bytes);
    } else {
      // Half of the last digit, and the byte that parsing drops.
      const int64_t unit = *ParseByteSize(
          absl::StrCat(1, text.substr(text.find_first_not_of("0123456789."))));
      EXPECT_LE(std::abs(*parsed - bytes), unit / 20 + 1) << text;
    }
  }
}

}  // namespace
}  // namespace folio
