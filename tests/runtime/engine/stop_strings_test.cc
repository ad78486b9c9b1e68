#include "runtime/engine/stop_strings.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace folio {
namespace {

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// By the definition: the longest stop string that `text` ends with.
const std::string* PlainMatch(const std::vector<std::string>& stops,
                              const std::string& text) {
  const std::string* longest = nullptr;
  for (const std::string& stop : stops) {
    if (EndsWith(text, stop) &&
        (longest == nullptr || stop.size() > longest->size())) {
      longest = &stop;
    }
  }
  return longest;
}

// The longest end of `text` that is a proper prefix of a stop string.
size_t PlainWithheld(const std::vector<std::string>& stops,
                     const std::string& text) {
  size_t most = 0;
  for (const std::string& stop : stops) {
    for (size_t length = 1; length < stop.size(); ++length) {
      if (EndsWith(text, stop.substr(0, length))) {
        most = std::max(most, length);
      }
    }
  }
  return most;
}

std::string RandomText(std::mt19937& random, size_t length) {
  std::string text;
  for (size_t i = 0; i < length; ++i) {
    text += static_cast<char>('a' + random() % 2);
  }
  return text;
}

TEST(StopMatcherTest, EqualsTheDefinitionOnRandomTexts) {
  int num_matches = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<std::string> stops(1 + random() % 4);
    for (std::string& stop : stops) stop = RandomText(random, 1 + random() % 8);
    const size_t may_stop_from = random() % 20;
    const StopStrings strings(stops);
    StopMatcher matcher(&strings);
    std::string text;
    bool matched = false;
    while (!matched && text.size() < 60) {
      const std::string piece = RandomText(random, random() % 5);
      const bool may_stop = text.size() >= may_stop_from;
      const auto match = matcher.Append(piece, may_stop);
      for (size_t i = 0; i < piece.size() && !matched; ++i) {
        text += piece[i];
        const std::string* const expected =
            may_stop ? PlainMatch(stops, text) : nullptr;
        matched = expected != nullptr;
        if (!matched) continue;
        ASSERT_TRUE(match.has_value());
        EXPECT_EQ(match->end, i + 1);
        EXPECT_EQ(*match->stop, *expected);
      }
      ASSERT_EQ(match.has_value(), matched);
      if (!matched) {
        EXPECT_EQ(matcher.num_withheld(), PlainWithheld(stops, text));
      }
    }
    num_matches += matched;
  }
  EXPECT_GT(num_matches, 1000);
  EXPECT_LT(num_matches, 2000);
}

TEST(StopMatcherTest, OfCharactersOnlyWholeOnesAreWithheld) {
  const std::vector<std::string> stops = {"\xC3\xA9\xC3\xA9"};  // "éé"
  const StopStrings strings(stops);
  StopMatcher matcher(&strings);
  EXPECT_FALSE(matcher.Append("\xC3\xA8", true).has_value());  // "è"
  EXPECT_EQ(matcher.num_withheld(), 0u);
  EXPECT_FALSE(matcher.Append("\xC3\xA9", true).has_value());
  EXPECT_EQ(matcher.num_withheld(), 2u);
}

}  // namespace
}  // namespace folio
