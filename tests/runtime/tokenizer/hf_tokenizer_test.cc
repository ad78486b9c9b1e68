// What tokenizer.json and tokenizer_config.json describe, on small ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/tokenizer/detokenizer.h"
#include "runtime/tokenizer/open_tokenizer.h"
#include "tests/runtime/tokenizer/hand_made.h"

namespace folio {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Tokenizer> Open(const json& tokenizer) {
  auto opened = OpenHandMadeHf(tokenizer);
  EXPECT_TRUE(opened.ok()) << opened.status();
  return *std::move(opened);
}

std::vector<TokenId> Encoded(const Tokenizer& tokenizer,
                             const std::string& text,
                             const EncodeOptions& options = {}) {
  const auto tokens = tokenizer.Encode(text, options);
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  return *tokens;
}

TEST(HfTokenizer, ByteLevel) {
  const auto tokenizer = Open(ByteLevelJson());
  EXPECT_THAT(Encoded(*tokenizer, "abc ab!"), ElementsAre(257, 258, '!'));
  EXPECT_THAT(Encoded(*tokenizer, "\u00E9"), ElementsAre(0xC3, 0xA9));
  EXPECT_THAT(Encoded(*tokenizer, ""), IsEmpty());
  EXPECT_EQ(Decode(*tokenizer, Encoded(*tokenizer, "abc \u00E9")),
            "abc \u00E9");
  const TokenizerInfo& info = tokenizer->info();
  EXPECT_EQ(info.kind, "byte-level BPE");
  EXPECT_EQ(info.pre_tokenizer, "tokenizer.json");
  EXPECT_EQ(info.vocab_size, 260);
  EXPECT_EQ(info.num_merges, 3);
  EXPECT_EQ(info.num_special_tokens, 1);
  EXPECT_EQ(info.bos_token, std::nullopt);
  EXPECT_THAT(info.eos_tokens, IsEmpty());
  EXPECT_FALSE(tokenizer->adds_leading_space());
}

TEST(HfTokenizer, SentencePiece) {
  const auto tokenizer = Open(SentencePieceJson());
  EXPECT_EQ(tokenizer->info().kind, "SentencePiece BPE");
  EXPECT_TRUE(tokenizer->adds_leading_space());
  EXPECT_THAT(Encoded(*tokenizer, "ab ba"), ElementsAre(263, 261, 260, 259));
  // U+00E9 as its two bytes.
  EXPECT_THAT(Encoded(*tokenizer, "\u00E9"),
              ElementsAre(261, 3 + 0xC3, 3 + 0xA9));
  EXPECT_THAT(Encoded(*tokenizer, "ab", {.add_special = true}),
              ElementsAre(1, 263));
  EXPECT_THAT(Encoded(*tokenizer, "", {.add_special = true}), ElementsAre(1));
  for (const char* text : {"ab ba", " ab", "ab ", "  ", "\u00E9\n\u20AC", ""}) {
    EXPECT_EQ(Decode(*tokenizer, Encoded(*tokenizer, text)), text);
  }
}

TEST(HfTokenizer, SpecialTokensInTextAreTextUnlessAskedFor) {
  const auto byte_level = Open(ByteLevelJson());
  EXPECT_THAT(Encoded(*byte_level, "a<end>"),
              ElementsAre('a', '<', 'e', 'n', 'd', '>'));
  EXPECT_THAT(Encoded(*byte_level, "a<end>", {.parse_special = true}),
              ElementsAre('a', 259));
  std::string bytes;
  byte_level->AppendBytes(259, bytes);
  EXPECT_EQ(bytes, "");

  // Even where merges would lead to one: here "<s>" comes of "<s" and ">".
  json tokenizer = SentencePieceJson();
  int id = 264;
  for (const char* text : {"<", "s", ">", "<s"}) {
    tokenizer["model"]["vocab"][text] = id++;
  }
  tokenizer["model"]["merges"] = {"< s", "<s >"};
  const auto sentencepiece = Open(tokenizer);
  EXPECT_THAT(Encoded(*sentencepiece, "<s>"), ElementsAre(261, 267, 266));
  EXPECT_THAT(Encoded(*sentencepiece, "<s>", {.parse_special = true}),
              ElementsAre(1));
}

// A piece that is a special token's name isn't one either.
TEST(HfTokenizer, WholePiecesAreNeverSpecial) {
  json tokenizer = ByteLevelJson();
  tokenizer["model"]["ignore_merges"] = true;
  tokenizer["model"]["vocab"]["cab"] = 260;
  tokenizer["model"]["vocab"]["cba"] = 261;
  tokenizer["added_tokens"].push_back(
      {{"id", 261}, {"content", "cba"}, {"special", true}});
  const auto opened = Open(tokenizer);
  EXPECT_THAT(Encoded(*opened, "cab"), ElementsAre(260));
  EXPECT_THAT(Encoded(*opened, "cba"), ElementsAre('c', 'b', 'a'));
}

TEST(HfTokenizer, AddedTokensBeforeAndAfterNormalizing) {
  json tokenizer = ByteLevelJson();
  tokenizer["normalizer"] = {{"type", "Lowercase"}};
  tokenizer["added_tokens"].push_back(
      {{"id", 260}, {"content", "Raw"}, {"normalized", false}});
  tokenizer["added_tokens"].push_back(
      {{"id", 261}, {"content", "Low"}, {"normalized", true}});
  const auto opened = Open(tokenizer);
  EXPECT_THAT(Encoded(*opened, "Raw"), ElementsAre(260));
  EXPECT_THAT(Encoded(*opened, "raw"), ElementsAre('r', 'a', 'w'));
  EXPECT_THAT(Encoded(*opened, "lOW"), ElementsAre(261));
  EXPECT_THAT(Encoded(*opened, "AB"), ElementsAre(256));
  // They stand for their contents.
  EXPECT_EQ(Decode(*opened, std::vector<TokenId>{260, 261}), "RawLow");
}

TEST(HfTokenizer, AddedTokensWriteTheirOwnText) {
  json tokenizer = ByteLevelJson();
  // In the byte-level alphabet, this would be two bytes 0xE9.
  tokenizer["added_tokens"].push_back(
      {{"id", 260}, {"content", "\u00E9\u00E9"}});
  const auto opened = Open(tokenizer);
  EXPECT_THAT(Encoded(*opened, "\u00E9\u00E9"), ElementsAre(260));
  EXPECT_EQ(Decode(*opened, std::vector<TokenId>{260}), "\u00E9\u00E9");
}

TEST(HfTokenizer, Templates) {
  json tokenizer = ByteLevelJson();
  const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const auto token = [](const char* name) {
    return json{{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
  };
  const json post_template = {
      {"type", "TemplateProcessing"},
      {"single", {token("start"), token("start"), text, token("stop")}},
      {"special_tokens",
       {{"start", {{"ids", {259, 65}}}}, {"stop", {{"ids", {66}}}}}}};
  for (const json& post :
       {post_template,
        json{{"type", "Sequence"},
             {"processors", {{{"type", "ByteLevel"}}, post_template}}}}) {
    tokenizer["post_processor"] = post;
    const auto opened = Open(tokenizer);
    EXPECT_THAT(Encoded(*opened, "ab"), ElementsAre(256));
    EXPECT_THAT(Encoded(*opened, "ab", {.add_special = true}),
                ElementsAre(259, 65, 259, 65, 256, 66));
  }
}

TEST(HfTokenizer, ConfigNamesTokensThatStartAndEndTexts) {
  const auto open = [](const json& tokenizer, const json& config) {
    auto opened = OpenHandMadeHfFiles(tokenizer.dump(), config.dump());
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  };
  const json config = {{"bos_token", "abc"},
                       {"eos_token", {{"content", "<end>"}}},
                       {"add_bos_token", true},
                       {"add_eos_token", true}};
  const auto opened = open(ByteLevelJson(), config);
  EXPECT_EQ(opened->info().bos_token, 257);
  EXPECT_THAT(opened->info().eos_tokens, ElementsAre(259));
  EXPECT_THAT(Encoded(*opened, "x", {.add_special = true}),
              ElementsAre(257, 'x', 259));
  EXPECT_THAT(Encoded(*opened, "x"), ElementsAre('x'));
  // A template in tokenizer.json decides instead.
  const auto with_template = open(
      SentencePieceJson(),
      {{"bos_token", "</s>"}, {"eos_token", nullptr}, {"add_bos_token", true}});
  EXPECT_EQ(with_template->info().bos_token, 2);
  EXPECT_THAT(Encoded(*with_template, "ab", {.add_special = true}),
              ElementsAre(1, 263));
  EXPECT_EQ(
      OpenHandMadeHfFiles(ByteLevelJson().dump(), R"({"eos_token": "nobody"})")
          .status()
          .code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(HfTokenizer, Metaspace) {
  json tokenizer = SentencePieceJson();
  tokenizer["normalizer"] = nullptr;
  const auto open = [&](const char* scheme) {
    const json step = {{"type", "Metaspace"},
                       {"replacement", "\u2581"},
                       {"prepend_scheme", scheme},
                       {"split", true}};
    tokenizer["pre_tokenizer"] = step;
    tokenizer["decoder"] = step;
    tokenizer["added_tokens"].push_back({{"id", 264}, {"content", "|"}});
    auto opened = Open(tokenizer);
    tokenizer["added_tokens"].erase(3);
    return opened;
  };
  EXPECT_THAT(Encoded(*open("always"), "ab|ab b"),
              ElementsAre(263, 264, 263, 261, 260));
  EXPECT_THAT(Encoded(*open("first"), "ab|ab"), ElementsAre(263, 264, 262));
  EXPECT_THAT(Encoded(*open("never"), "ab|ab"), ElementsAre(262, 264, 262));
  EXPECT_THAT(Encoded(*open("always"), " ab"), ElementsAre(263));
  EXPECT_TRUE(open("first")->adds_leading_space());
  EXPECT_FALSE(open("never")->adds_leading_space());
  EXPECT_EQ(Decode(*open("always"), std::vector<TokenId>{263, 261, 260}),
            "ab b");
}

TEST(HfTokenizer, StepsOfPreTokenizing) {
  json tokenizer = ByteLevelJson();
  const auto split_with = [&](const json& steps) {
    tokenizer["pre_tokenizer"] = steps;
    return Encoded(*Open(tokenizer), "ab1ab23");
  };
  EXPECT_THAT(split_with({{"type", "ByteLevel"}, {"add_prefix_space", true}}),
              ElementsAre(258, '1', 256, '2', '3'));
  const json last = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const auto sequence = [&](const json& first) {
    return split_with({{"type", "Sequence"}, {"pretokenizers", {first, last}}});
  };
  tokenizer["model"]["vocab"]["23"] = 260;
  tokenizer["model"]["merges"].push_back("2 3");
  EXPECT_THAT(sequence({{"type", "Digits"}, {"individual_digits", true}}),
              ElementsAre(256, '1', 256, '2', '3'));
  EXPECT_THAT(sequence({{"type", "Digits"}, {"individual_digits", false}}),
              ElementsAre(256, '1', 256, 260));
  EXPECT_THAT(sequence({{"type", "Split"},
                        {"pattern", {{"Regex", "a"}}},
                        {"behavior", "Isolated"}}),
              ElementsAre('a', 'b', '1', 'a', 'b', 260));
  EXPECT_THAT(sequence({{"type", "Split"},
                        {"pattern", {{"String", "b1"}}},
                        {"behavior", "Removed"},
                        {"invert", true}}),
              ElementsAre('b', '1'));
}

TEST(HfTokenizer, NamesWhatHasNoToken) {
  json tokenizer = ByteLevelJson();
  tokenizer["model"]["vocab"].erase("z");
  const auto opened = Open(tokenizer);
  const auto tokens = opened->Encode("ab z", {});
  ASSERT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tokens.status().message()),
              AllOf(HasSubstr("\"z\""), HasSubstr("offset 3")));
  tokenizer["model"]["unk_token"] = "a";
  EXPECT_THAT(Encoded(*Open(tokenizer), "zz"), ElementsAre('a', 'a'));
}

TEST(HfTokenizer, RefusesInvalidUtf8) {
  const auto tokens = Open(ByteLevelJson())->Encode("ab\xC3(", {});
  ASSERT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tokens.status().message()),
              AllOf(HasSubstr("0xc3"), HasSubstr("offset 2")));
}

TEST(HfTokenizer, ReadsBothFormsOfMergesAndOldFiles) {
  json tokenizer = ByteLevelJson();
  json& merges = tokenizer["model"]["merges"];
  merges = json::array();
  merges.push_back({"a", "b"});
  merges.push_back("ab c");
  tokenizer["model"].erase("type");
  EXPECT_THAT(Encoded(*Open(tokenizer), "abc"), ElementsAre(257));
}

// Ids without tokens, of which there may be some, stand for nothing.
TEST(HfTokenizer, VocabulariesMayHaveHoles) {
  json tokenizer = ByteLevelJson();
  tokenizer["added_tokens"][0]["id"] = 300;
  const auto opened = Open(tokenizer);
  EXPECT_EQ(opened->info().vocab_size, 301);
  EXPECT_EQ(Decode(*opened, std::vector<TokenId>{'a', 280, 'b'}), "ab");
}

TEST(HfTokenizer, NeedsTheFile) {
  const auto opened = OpenHfTokenizer(ModelFiles::InMemory("empty", {}));
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(opened.status().message()),
              HasSubstr("tokenizer.json"));
}

TEST(HfTokenizer, RandomTextComesBack) {
  for (const json& file : {ByteLevelJson(), SentencePieceJson()}) {
    const auto tokenizer = Open(file);
    for (int seed = 0; seed < 500; ++seed) {
      std::string text = RandomText(seed, 60);
      ASSERT_EQ(Decode(*tokenizer, Encoded(*tokenizer, text)), text)
          << tokenizer->info().kind << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace folio
