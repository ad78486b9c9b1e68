#include "runtime/tokenizer/normalizer.h"

#include <gtest/gtest.h>

#include <chrono>

#include "runtime/base/utf8.h"
#include "tests/runtime/tokenizer/hand_made.h"

namespace folio {
namespace {

template <typename... Steps>
std::string Normalized(const std::string& text, Steps... steps) {
  std::vector<NormalizerStep> list;
  (list.push_back(std::move(steps)), ...);
  const auto result = Normalizer(std::move(list)).Apply(text);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

constexpr UnicodeForm kNfc{};
constexpr UnicodeForm kNfd{.compose = false};
constexpr UnicodeForm kNfkc{.compatibility = true};
constexpr UnicodeForm kNfkd{.compatibility = true, .compose = false};

// Examples of Unicode Standard Annex #15, its figures 3 to 6.
TEST(Normalizer, UnicodeForms) {
  const struct {
    const char* text;
    const char* nfd;
    const char* nfc;
    const char* nfkd;
    const char* nfkc;
  } kCases[] = {
      {"plain", "plain", "plain", "plain", "plain"},
      {"\u00C5", "A\u030A", "\u00C5", "A\u030A", "\u00C5"},
      {"\u212B", "A\u030A", "\u00C5", "A\u030A", "\u00C5"},
      {"\u2126", "\u03A9", "\u03A9", "\u03A9", "\u03A9"},
      {"\u1E69", "s\u0323\u0307", "\u1E69", "s\u0323\u0307", "\u1E69"},
      {"\u1E0B\u0323", "d\u0323\u0307", "\u1E0D\u0307", "d\u0323\u0307",
       "\u1E0D\u0307"},
      {"q\u0307\u0323", "q\u0323\u0307", "q\u0323\u0307", "q\u0323\u0307",
       "q\u0323\u0307"},
      {"\uFB01", "\uFB01", "\uFB01", "fi", "fi"},
      {"2\u2075", "2\u2075", "2\u2075", "25", "25"},
      {"\u1E9B\u0323", "\u017F\u0323\u0307", "\u1E9B\u0323", "s\u0323\u0307",
       "\u1E69"},
      // Hangul, and a character that composition leaves apart.
      {"\uAC01", "\u1100\u1161\u11A8", "\uAC01", "\u1100\u1161\u11A8",
       "\uAC01"},
      {"\u0958", "\u0915\u093C", "\u0915\u093C", "\u0915\u093C",
       "\u0915\u093C"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.text);
    EXPECT_EQ(Normalized(c.text, kNfd), c.nfd);
    EXPECT_EQ(Normalized(c.text, kNfc), c.nfc);
    EXPECT_EQ(Normalized(c.text, kNfkd), c.nfkd);
    EXPECT_EQ(Normalized(c.text, kNfkc), c.nfkc);
  }
}

TEST(Normalizer, FormsAreStableAndComposeWhatTheyDecompose) {
  for (int seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const std::string text = RandomText(seed, 60);
    const std::string nfc = Normalized(text, kNfc);
    EXPECT_TRUE(IsValidUtf8(nfc));
    EXPECT_EQ(Normalized(nfc, kNfc), nfc);
    EXPECT_EQ(Normalized(text, kNfd, kNfc), nfc);
    EXPECT_EQ(Normalized(nfc, kNfd), Normalized(text, kNfd));
    EXPECT_EQ(Normalized(text, kNfkd, kNfkc), Normalized(text, kNfkc));
  }
}

// Marks whose order is the reverse of the canonical one, which ordering by
// neighbours takes quadratic time for.
TEST(Normalizer, OrdersLongRunsOfMarks) {
  constexpr int kMarks = 100'000;
  std::string text = "q";
  std::string expected = "q";
  for (int i = 0; i < kMarks; ++i) text += "\u0307";
  for (int i = 0; i < kMarks; ++i) text += "\u0323";
  for (int i = 0; i < kMarks; ++i) expected += "\u0323";
  for (int i = 0; i < kMarks; ++i) expected += "\u0307";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Normalized(text, kNfc), expected);
  // Milliseconds; 10^10 exchanges would take most of a minute.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Normalizer, PrependsToTextAlone) {
  EXPECT_EQ(Normalized("a", Prepend{"_"}), "_a");
  EXPECT_EQ(Normalized("_a", Prepend{"_"}), "__a");
  EXPECT_EQ(Normalized("", Prepend{"_"}), "");
}

TEST(Normalizer, ReplacesMatches) {
  EXPECT_EQ(Normalized(" a  b ", Replace{*Pattern::Literal(" "), "\u2581"}),
            "\u2581"
            "a\u2581\u2581"
            "b\u2581");
  EXPECT_EQ(Normalized("a  b\n", Replace{*Pattern::Compile("\\s+"), " "}),
            "a b ");
  EXPECT_EQ(Normalized("aXb", Replace{*Pattern::Literal("X"), ""}), "ab");
  EXPECT_EQ(Normalized("ab", Replace{*Pattern::Compile("(a)"), "$1\\1"}),
            "$1\\1b")
      << "the content is no expression";
  EXPECT_EQ(Normalized("ab", Replace{*Pattern::Compile("x*"), "-"}), "-a-b-");
}

TEST(Normalizer, LowersEachCharacter) {
  EXPECT_EQ(Normalized("Ab\u00C9\u0416 1", Lowercase{}), "ab\u00E9\u0436 1");
  EXPECT_EQ(Normalized("\u0130", Lowercase{}), "i\u0307");
  EXPECT_EQ(Normalized("\u03A3", Lowercase{}), "\u03C3");
  EXPECT_EQ(Normalized("\u00DF\u01C5", Lowercase{}), "\u00DF\u01C6");
}

TEST(Normalizer, DoesStepsInOrder) {
  EXPECT_EQ(Normalized("B", Prepend{"A"}, Lowercase{}), "ab");
  EXPECT_EQ(Normalized("B", Lowercase{}, Prepend{"A"}), "Ab");
  EXPECT_TRUE(Normalizer().changes_nothing());
}

}  // namespace
}  // namespace folio
