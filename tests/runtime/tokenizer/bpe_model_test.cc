#include "runtime/tokenizer/bpe_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace folio {
namespace {

using ::testing::ElementsAre;

using Tokens = std::vector<TokenId>;

constexpr char kMarker[] = "\u2581";

Tokens Encoded(const BpeModel& model, const std::string& piece) {
  BpeMerger merger;
  Tokens tokens;
  std::string missing;
  EXPECT_TRUE(model.EncodePiece(piece, merger, tokens, missing)) << missing;
  return tokens;
}

std::string MissingFrom(const BpeModel& model, const std::string& piece) {
  BpeMerger merger;
  Tokens tokens;
  std::string missing = "nothing";
  model.EncodePiece(piece, merger, tokens, missing);
  return missing;
}

// Merges of texts, in the order of ranks.
MergeTable MergesOf(
    const std::vector<std::string>& texts,
    const std::vector<std::pair<std::string, std::string>>& merges) {
  const Vocabulary vocabulary(texts);
  MergeTable table;
  for (const auto& [left, right] : merges) {
    table.Add(
        vocabulary.Find(left), vocabulary.Find(right),
        {static_cast<int32_t>(table.size()), vocabulary.Find(left + right)});
  }
  return table;
}

BpeOptions OptionsFor(BpeUnits units) {
  BpeOptions options;
  options.units = units;
  return options;
}

TEST(BpeModel, MergesBytesOrCharacters) {
  const std::vector<std::string> texts = {"\xC3", "\xA9", "\u00E9", "a",
                                          "a\u00E9"};
  const BpeModel bytes(Vocabulary(texts),
                       MergesOf(texts, {{"\xC3", "\xA9"}, {"a", "\u00E9"}}),
                       OptionsFor(BpeUnits::kBytes));
  EXPECT_THAT(Encoded(bytes, "a\u00E9\u00E9"), ElementsAre(4, 2));
  EXPECT_THAT(Encoded(bytes, "\u00E9"), ElementsAre(2));
  EXPECT_EQ(MissingFrom(bytes, "ab"), "b");
  EXPECT_EQ(MissingFrom(bytes, "\u20AC"), "\xE2");

  const std::vector<std::string> characters = {"\u00E9", "a", "\u65E5",
                                               "\u65E5\u00E9"};
  const BpeModel model(Vocabulary(characters),
                       MergesOf(characters, {{"\u65E5", "\u00E9"}}),
                       OptionsFor(BpeUnits::kCharacters));
  EXPECT_THAT(Encoded(model, "\u65E5\u00E9\u65E5"), ElementsAre(3, 2));
  EXPECT_EQ(MissingFrom(model, "a\u20AC"), "\u20AC");
}

TEST(BpeModel, WholePiecesOnlyWhereAskedFor) {
  // No merge leads to "abc".
  const std::vector<std::string> texts = {"a", "b", "c", "ab", "abc"};
  BpeOptions options = OptionsFor(BpeUnits::kBytes);
  const BpeModel merging(Vocabulary(texts), MergesOf(texts, {{"a", "b"}}),
                         options);
  EXPECT_THAT(Encoded(merging, "abc"), ElementsAre(3, 2));
  options.takes_whole_pieces = true;
  const BpeModel whole(Vocabulary(texts), MergesOf(texts, {{"a", "b"}}),
                       options);
  EXPECT_THAT(Encoded(whole, "abc"), ElementsAre(4));
  EXPECT_THAT(Encoded(whole, "abca"), ElementsAre(3, 2, 0));
}

// A token that merging reaches only sometimes: "abc" alone becomes a + bc.
TEST(BpeModel, AVocabularysWordIsNotAlwaysWhatMergingGives) {
  const std::vector<std::string> texts = {"a", "b", "c", "bc", "ab", "abc"};
  const BpeModel model(Vocabulary(texts),
                       MergesOf(texts, {{"b", "c"}, {"a", "b"}, {"ab", "c"}}),
                       OptionsFor(BpeUnits::kBytes));
  EXPECT_THAT(Encoded(model, "abc"), ElementsAre(0, 3));
}

TEST(BpeModel, CharactersWithoutTokens) {
  const std::vector<std::string> texts = {"<unk>", "a", "<0xC3>", "<0xA9>"};
  BpeOptions options = OptionsFor(BpeUnits::kCharacters);
  options.byte_tokens[0xC3] = 2;
  options.byte_tokens[0xA9] = 3;
  const auto model = [&] { return BpeModel(Vocabulary(texts), {}, options); };
  EXPECT_THAT(Encoded(model(), "a\u00E9"), ElementsAre(1, 2, 3));
  EXPECT_EQ(MissingFrom(model(), "a\u00EA"), "\u00EA") << "one byte of two";
  options.unknown = 0;
  EXPECT_THAT(Encoded(model(), "a\u00EA\u20ACa\u20AC\u00E9"),
              ElementsAre(1, 0, 0, 1, 0, 2, 3));
  options.fuses_unknown = true;
  EXPECT_THAT(Encoded(model(), "a\u00EA\u20ACa\u20AC\u00E9\u20AC"),
              ElementsAre(1, 0, 1, 0, 2, 3, 0));
}

// Words are encoded one by one where no token goes on into the next word. A
// vocabulary with one more token, which does, may not be cut; where that
// token's letters don't occur, both must agree.
TEST(BpeModel, CuttingAtWordsChangesNothing) {
  std::vector<std::string> texts = {"a", "b", kMarker, "ab"};
  const std::string marker = kMarker;
  texts.push_back(marker + "a");
  texts.push_back(marker + marker);
  texts.push_back(marker + marker + "ab");
  texts.push_back("ba");
  const std::vector<std::pair<std::string, std::string>> merges = {
      {marker, marker},
      {"a", "b"},
      {marker, "a"},
      {marker + marker, "ab"},
      {"b", "a"}};
  const BpeModel cut(Vocabulary(texts), MergesOf(texts, merges),
                     OptionsFor(BpeUnits::kCharacters));
  std::vector<std::string> more = texts;
  more.push_back("z" + marker);
  const BpeModel uncut(Vocabulary(more), MergesOf(more, merges),
                       OptionsFor(BpeUnits::kCharacters));
  for (int seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    std::string piece;
    for (uint64_t length = 1 + random() % 20; length > 0; --length) {
      piece += texts[random() % 3];
    }
    ASSERT_EQ(Encoded(cut, piece), Encoded(uncut, piece)) << "seed " << seed;
  }
}

TEST(BpeModel, TokensAcrossWordsAreFound) {
  const std::string marker = kMarker;
  const std::vector<std::string> texts = {"a", marker, "a" + marker};
  const BpeModel model(Vocabulary(texts), MergesOf(texts, {{"a", marker}}),
                       OptionsFor(BpeUnits::kCharacters));
  EXPECT_THAT(Encoded(model, "a" + marker + "a"), ElementsAre(2, 0));
}

}  // namespace
}  // namespace folio
