#include "runtime/tokenizer/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/support/sanitized.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Matches(const Pattern& pattern,
                                 const std::string& text) {
  std::vector<std::string> matches;
  const absl::Status status =
      pattern.ForEachMatch(text, [&](size_t begin, size_t end) {
        matches.push_back(text.substr(begin, end - begin));
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return matches;
}

std::vector<std::string> Matches(const std::string& regex,
                                 const std::string& text) {
  const auto pattern = Pattern::Compile(regex);
  EXPECT_TRUE(pattern.ok()) << pattern.status();
  return Matches(*pattern, text);
}

TEST(Pattern, KnowsUnicode) {
  EXPECT_THAT(Matches("\\p{L}+", "na\u00EFve \u65E5\u672C 12"),
              ElementsAre("na\u00EFve", "\u65E5\u672C"));
  EXPECT_THAT(Matches("\\p{N}", "1\u00BD\u0663"),
              ElementsAre("1", "\u00BD", "\u0663"));
  EXPECT_THAT(Matches("(?i:'RE)", "we're 'Re"), ElementsAre("'re", "'Re"));
  EXPECT_THAT(Matches(".", "\u20AC\U0001F600"),
              ElementsAre("\u20AC", "\U0001F600"));
  EXPECT_THAT(Matches("\\s+(?!\\S)", "a  b "), ElementsAre(" ", " "));
  EXPECT_THAT(Matches("x", "aaa"), IsEmpty());
}

// Where PCRE2's own meaning differs from Oniguruma's.
TEST(Pattern, ClassesAreThoseOfOniguruma) {
  // U+180E is no white space in Unicode since version 6.3; U+0085 is.
  EXPECT_THAT(Matches("\\s", "\u180E\u0085\u3000"),
              ElementsAre("\u0085", "\u3000"));
  EXPECT_THAT(Matches("[^\\s]", "\u180E \u200B"),
              ElementsAre("\u180E", "\u200B"));
  EXPECT_THAT(Matches("\\S", "\u180E "), ElementsAre("\u180E"));
  // Marks, connecting punctuation and letter-like symbols belong to words.
  EXPECT_THAT(Matches("\\w+", "e\u0301_\u203F \u24B6-"),
              ElementsAre("e\u0301_\u203F", "\u24B6"));
  EXPECT_THAT(Matches("[\\w-]+", "a-b!"), ElementsAre("a-b"));
  EXPECT_THAT(Matches("\\W", "a-\u0301"), ElementsAre("-"));
  EXPECT_THAT(Matches("\\b.", "ab c"), ElementsAre("a", " ", "c"));
  EXPECT_THAT(Matches("\\B.", "ab c"), ElementsAre("b"));
  EXPECT_THAT(Matches("^.", "a\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(Matches("\\u0061", "ba"), ElementsAre("a"));
  EXPECT_THAT(Matches("\\p{N}{1,2}", "12345"), ElementsAre("12", "34", "5"));
}

TEST(Pattern, RefusesWhatWouldMeanSomethingElse) {
  for (const char* regex :
       {"\\h", "\\K", "\\Q", "\\C", "[\\W]", "[a[b]]", "[a&&b]", "[]", "(*UTF)",
        "(?R)", "(?m:.)", "a{,2}", "\\p{N}{1,3}+", "a\\", "\\u12"}) {
    const auto pattern = Pattern::Compile(regex);
    ASSERT_EQ(pattern.status().code(), absl::StatusCode::kInvalidArgument)
        << regex;
    EXPECT_THAT(std::string(pattern.status().message()),
                AllOf(HasSubstr(regex), HasSubstr("not supported")));
  }
}

TEST(Pattern, NamesWhatIsWrong) {
  for (const char* regex : {"(", "[a", "a**", "\\p{Nonsense}", "a)", "\\p{"}) {
    const auto pattern = Pattern::Compile(regex);
    ASSERT_EQ(pattern.status().code(), absl::StatusCode::kInvalidArgument)
        << regex;
    EXPECT_THAT(std::string(pattern.status().message()), HasSubstr(regex));
  }
  EXPECT_EQ(Pattern::Compile(std::string(1 << 20, 'a')).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Pattern, LiteralsAreNoExpressions) {
  EXPECT_THAT(Matches(*Pattern::Literal("a.b*"), "aab a.b* a.b*"),
              ElementsAre("a.b*", "a.b*"));
  EXPECT_EQ(Pattern::Literal("").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Pattern, EmptyMatchesComeOncePerPlace) {
  EXPECT_THAT(Matches("x*", "x\u20ACa"), ElementsAre("x", "", "", ""));
  EXPECT_THAT(Matches("", ""), ElementsAre(""));
}

TEST(Pattern, MatchesMayRunInsideOneAnother) {
  const auto words = Pattern::Compile("\\w+");
  const auto letters = Pattern::Compile("\\w");
  std::string found;
  const auto visit_word = [&](size_t begin, size_t end) {
    found += '(';
    const std::string word = std::string("ab cde").substr(begin, end - begin);
    const auto visit_letter = [&](size_t at, size_t /*end*/) {
      found += word[at];
      return absl::OkStatus();
    };
    const absl::Status status = letters->ForEachMatch(word, visit_letter);
    found += ')';
    return status;
  };
  ASSERT_TRUE(words->ForEachMatch("ab cde", visit_word).ok());
  EXPECT_EQ(found, "(ab)(cde)");
}

TEST(Pattern, AVisitorsErrorEndsTheSearch) {
  int visits = 0;
  const auto pattern = Pattern::Compile("a");
  const absl::Status status = pattern->ForEachMatch("aaa", [&](size_t, size_t) {
    return ++visits == 2 ? absl::CancelledError("enough") : absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(visits, 2);
}

// Each repetition of a group takes room on the machine code's stack, which is
// small; then the interpreter goes on. Nothing of the text is lost.
TEST(Pattern, LongRepetitionsMatchWhole) {
  const std::string text(kSanitized ? 100'000 : 300'000, 'a');
  EXPECT_THAT(Matches("(?:a|b)+", text), ElementsAre(text));
  EXPECT_THAT(Matches("a+", text), ElementsAre(text));
  const std::string spaces(text.size(), ' ');
  EXPECT_THAT(Matches("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", spaces + "a"),
              ElementsAre(spaces.substr(1), " "));
}

TEST(Pattern, ExponentialPatternsEndWithAStatus) {
  const auto pattern = Pattern::Compile("(?:a|a)+b");
  ASSERT_TRUE(pattern.ok());
  // Without a "b" somewhere, there is nothing to try.
  const absl::Status status =
      pattern->ForEachMatch(std::string(60, 'a') + "cb",
                            [](size_t, size_t) { return absl::OkStatus(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("(?:a|a)+b"));
}

TEST(Pattern, ManyThreadsUseOne) {
  const auto pattern = Pattern::Compile("\\p{L}+");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&pattern, i] {
      const std::string word(i + 1, 'x');
      for (int repeat = 0; repeat < 200; ++repeat) {
        EXPECT_THAT(Matches(*pattern, word + " 1 " + word),
                    ElementsAre(word, word));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace folio
