#include "runtime/tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "runtime/tokenizer/named_pre_tokenizers.h"
#include "tests/runtime/tokenizer/hand_made.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Pieces = std::vector<std::string>;

Pieces PiecesOf(const PreTokenizer& pre_tokenizer, const std::string& text,
                bool is_at_start = true) {
  Pieces pieces;
  const auto gather = [&pieces](std::string_view piece) {
    pieces.emplace_back(piece);
    return absl::OkStatus();
  };
  const absl::Status status =
      pre_tokenizer.ForEachPiece(text, is_at_start, gather);
  EXPECT_TRUE(status.ok()) << status;
  return pieces;
}

template <typename... Steps>
PreTokenizer PreTokenizerOf(Steps... steps) {
  std::vector<PreTokenizerStep> list;
  (list.push_back(std::move(steps)), ...);
  return PreTokenizer(std::move(list));
}

Pieces SplitAt(const std::string& regex, SplitBehavior behavior, bool invert,
               const std::string& text) {
  return PiecesOf(
      PreTokenizerOf(Split{*Pattern::Compile(regex), behavior, invert}), text);
}

// The example of the documentation of Hugging Face's tokenizers
// (SplitDelimiterBehavior): "the-final--countdown", split at "-".
TEST(PreTokenizer, Behaviors) {
  const std::string text = "the-final--countdown";
  const auto split = [&](SplitBehavior behavior) {
    return SplitAt("-", behavior, /*invert=*/false, text);
  };
  EXPECT_THAT(split(SplitBehavior::kRemoved),
              ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(split(SplitBehavior::kIsolated),
              ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(split(SplitBehavior::kMergedWithPrevious),
              ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(split(SplitBehavior::kMergedWithNext),
              ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(split(SplitBehavior::kContiguous),
              ElementsAre("the", "-", "final", "--", "countdown"));
}

// Inverted, what is between the matches is what the behaviour is about; two
// matches side by side are two pieces then.
TEST(PreTokenizer, InvertedBehaviors) {
  const auto split = [&](SplitBehavior behavior) {
    return SplitAt("[a-z]", behavior, /*invert=*/true, "ab--c-");
  };
  EXPECT_THAT(split(SplitBehavior::kRemoved), ElementsAre("a", "b", "c"));
  EXPECT_THAT(split(SplitBehavior::kIsolated),
              ElementsAre("a", "b", "--", "c", "-"));
  EXPECT_THAT(split(SplitBehavior::kMergedWithPrevious),
              ElementsAre("a", "b--", "c-"));
  EXPECT_THAT(split(SplitBehavior::kMergedWithNext),
              ElementsAre("a", "b", "--c", "-"));
  EXPECT_THAT(split(SplitBehavior::kContiguous),
              ElementsAre("ab", "--", "c", "-"));
}

TEST(PreTokenizer, EdgesOfText) {
  for (const auto behavior :
       {SplitBehavior::kIsolated, SplitBehavior::kMergedWithPrevious,
        SplitBehavior::kMergedWithNext, SplitBehavior::kContiguous}) {
    EXPECT_THAT(SplitAt("-", behavior, false, ""), IsEmpty());
    EXPECT_THAT(SplitAt("-", behavior, false, "-"), ElementsAre("-"));
    EXPECT_THAT(SplitAt("-", behavior, false, "a"), ElementsAre("a"));
  }
  EXPECT_THAT(SplitAt("-", SplitBehavior::kRemoved, false, "--"), IsEmpty());
  // Empty matches cut, and are no pieces.
  EXPECT_THAT(SplitAt("(?=[A-Z])", SplitBehavior::kIsolated, false, "aBcD"),
              ElementsAre("a", "Bc", "D"));
}

TEST(PreTokenizer, StepsApplyToThePiecesBefore) {
  const PreTokenizer pre_tokenizer = PreTokenizerOf(
      Split{*Pattern::Compile(" "), SplitBehavior::kMergedWithNext},
      Split{*Pattern::Compile("[0-9]{2}")});
  EXPECT_THAT(PiecesOf(pre_tokenizer, "a123 45"),
              ElementsAre("a", "12", "3", " ", "45"));
  EXPECT_THAT(PiecesOf(PreTokenizer(), "a b"), ElementsAre("a b"));
}

TEST(PreTokenizer, PrefixesAndRewritesPieces) {
  const auto split = [] { return Split{*Pattern::Compile("-")}; };
  EXPECT_THAT(
      PiecesOf(PreTokenizerOf(split(), PrefixPieces{.prefix = " "}), "a- b"),
      ElementsAre(" a", " -", " b"));
  const auto at_start = PreTokenizerOf(
      split(), PrefixPieces{.prefix = " ", .only_at_start = true});
  EXPECT_THAT(PiecesOf(at_start, "a-b"), ElementsAre(" a", "-", "b"));
  EXPECT_THAT(PiecesOf(at_start, "a-b", /*is_at_start=*/false),
              ElementsAre("a", "-", "b"));
  std::vector<NormalizerStep> remove;
  remove.push_back(Replace{*Pattern::Literal("b"), ""});
  EXPECT_THAT(
      PiecesOf(PreTokenizerOf(split(), Normalizer(std::move(remove))), "ab-b"),
      ElementsAre("a", "-"));
}

TEST(PreTokenizer, AVisitorsErrorEndsIt) {
  int visits = 0;
  const PreTokenizer pre_tokenizer =
      PreTokenizerOf(Split{*Pattern::Compile("-")});
  const absl::Status status =
      pre_tokenizer.ForEachPiece("a-b-c", true, [&](std::string_view) {
        return ++visits == 2 ? absl::CancelledError("") : absl::OkStatus();
      });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(visits, 2);
}

Pieces NamedPieces(const std::string& name, const std::string& text) {
  const auto named = FindNamedPreTokenizer(name);
  EXPECT_TRUE(named.ok()) << named.status();
  return PiecesOf(named->pre_tokenizer, text);
}

// Worked by hand from the expressions; '.' among the pieces is where spaces
// would be hard to see.
TEST(NamedPreTokenizers, SplitAsTheirFamiliesDo) {
  const std::string text = "I'll go, 'RE 1234 x2\n\n  y";
  EXPECT_THAT(NamedPieces("gpt-2", text),
              ElementsAre("I", "'ll", " go", ",", " '", "RE", " 1234", " x",
                          "2", "\n\n ", " y"));
  // Every digit alone, before words are looked for.
  EXPECT_THAT(NamedPieces("starcoder", text),
              ElementsAre("I", "'ll", " go", ",", " '", "RE", " ", "1", "2",
                          "3", "4", " x", "2", "\n\n ", " y"));
  // Contractions in any case; three digits; no space before them; line ends
  // together.
  EXPECT_THAT(NamedPieces("llama-bpe", text),
              ElementsAre("I", "'ll", " go", ",", " '", "RE", " ", "123", "4",
                          " x", "2", "\n\n", " ", " y"));
  EXPECT_THAT(NamedPieces("qwen2", text),
              ElementsAre("I", "'ll", " go", ",", " '", "RE", " ", "1", "2",
                          "3", "4", " x", "2", "\n\n", " ", " y"));
  // No contractions: letters, punctuation, line ends and digits.
  EXPECT_THAT(NamedPieces("deepseek-coder", text),
              ElementsAre("I", "'", "ll", " go", ",", " '", "RE", " ", "1", "2",
                          "3", "4", " x", "2", "\n", "\n", " ", " y"));
  // Punctuation first, so there are no contractions; then three digits alone.
  EXPECT_THAT(NamedPieces("falcon", text),
              ElementsAre("I", "'", "ll", " go", ",", " ", "'", "RE", " ",
                          "123", "4", " x", "2", "\n\n ", " y"));
}

TEST(NamedPreTokenizers, OtherScriptsAndWhiteSpace) {
  EXPECT_THAT(NamedPieces("gpt-2", "\u00E9t\u00E9\u3000\u00BD $a"),
              ElementsAre("\u00E9t\u00E9", "\u3000", "\u00BD", " $", "a"));
  EXPECT_THAT(NamedPieces("llama-bpe", "IT'S\u3000\u00E9 !\r\n\r\nz"),
              ElementsAre("IT", "'S", "\u3000\u00E9", " !\r\n\r\n", "z"));
  EXPECT_THAT(NamedPieces("llama-bpe", "(a) 12345"),
              ElementsAre("(a", ")", " ", "123", "45"));
  EXPECT_THAT(NamedPieces("qwen2", "  \n  a\t\tb"),
              ElementsAre("  \n", " ", " a", "\t", "\tb"));
  // Chinese characters are letters, taken with the white space before them at
  // first, and without it by the step for them.
  EXPECT_THAT(NamedPieces("deepseek-coder", "a \u4E00\u4E8C\u3002b"),
              ElementsAre("a", " ", "\u4E00\u4E8C", "\u3002", "b"));
  EXPECT_THAT(NamedPieces("falcon", "a$1234567+b"),
              ElementsAre("a", "$", "123", "456", "7", "+", "b"));
}

TEST(NamedPreTokenizers, HaveTheHabitsOfTheirFamilies) {
  EXPECT_TRUE(FindNamedPreTokenizer("llama-bpe")->takes_whole_pieces);
  EXPECT_TRUE(FindNamedPreTokenizer("llama-bpe")->adds_bos);
  EXPECT_TRUE(FindNamedPreTokenizer("qwen2")->composes_text);
  EXPECT_FALSE(FindNamedPreTokenizer("gpt-2")->takes_whole_pieces);
  EXPECT_FALSE(FindNamedPreTokenizer("gpt-2")->adds_bos);
}

TEST(NamedPreTokenizers, OthersAreRefusedByName) {
  const auto named = FindNamedPreTokenizer("tekken");
  ASSERT_EQ(named.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(named.status().message()),
      AllOf(HasSubstr("\"tekken\""),
            HasSubstr("gpt-2, starcoder, llama-bpe, qwen2, deepseek-coder, "
                      "falcon")));
}

// Nothing of a text is lost or changed, whatever it is.
TEST(NamedPreTokenizers, PiecesMakeUpTheText) {
  for (const char* name : {"gpt-2", "starcoder", "llama-bpe", "qwen2",
                           "deepseek-coder", "falcon"}) {
    const auto named = FindNamedPreTokenizer(name);
    ASSERT_TRUE(named.ok()) << named.status();
    for (int seed = 0; seed < 300; ++seed) {
      const std::string text = RandomText(seed, 80);
      const Pieces pieces = PiecesOf(named->pre_tokenizer, text);
      ASSERT_EQ(std::accumulate(pieces.begin(), pieces.end(), std::string()),
                text)
          << name << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace folio
