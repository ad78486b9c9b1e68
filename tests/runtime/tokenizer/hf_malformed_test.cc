// Files that are no tokenizer, or not one of ours: the message names the file,
// the key, what was found and what is expected.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/runtime/tokenizer/hand_made.h"
#include "tests/support/sanitized.h"

namespace folio {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// `at` is a JSON pointer into a good file, where `value` is put instead.
struct Case {
  const char* at;
  json value;
  std::vector<std::string> words;  // What the message must have.
};

void ExpectRefused(const json& tokenizer,
                   const std::vector<std::string>& words) {
  const auto opened = OpenHandMadeHf(tokenizer);
  ASSERT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument)
      << opened.status();
  const std::string message(opened.status().message());
  EXPECT_THAT(message, HasSubstr("hand-made/tokenizer.json"));
  for (const std::string& word : words) EXPECT_THAT(message, HasSubstr(word));
}

void ExpectAllRefused(const json& good, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << c.at << " = " << c.value.dump());
    json tokenizer = good;
    tokenizer[json::json_pointer(c.at)] = c.value;
    ExpectRefused(tokenizer, c.words);
  }
}

TEST(HfMalformed, Model) {
  ExpectAllRefused(
      ByteLevelJson(),
      {{"/model", 1, {"model", "a number", "an object"}},
       {"/model/type", "WordPiece", {"model.type", "WordPiece", "BPE"}},
       {"/model/type", "Unigram", {"model.type", "Unigram", "BPE"}},
       {"/model/type", "WordLevel", {"model.type", "WordLevel", "BPE"}},
       {"/model/type", 3, {"model.type", "a number", "a string"}},
       {"/model/dropout", 0.1, {"model.dropout", "0.1"}},
       {"/model/continuing_subword_prefix",
        "##",
        {"model.continuing_subword_prefix", "##"}},
       {"/model/end_of_word_suffix",
        "</w>",
        {"model.end_of_word_suffix", "</w>"}},
       {"/model/unk_token", "nobody", {"model.unk_token", "nobody"}},
       {"/model/ignore_merges",
        "yes",
        {"model.ignore_merges", "a string", "true or false"}},
       {"/model/byte_fallback", 1, {"model.byte_fallback", "a number"}}});
}

TEST(HfMalformed, Vocabulary) {
  ExpectAllRefused(
      ByteLevelJson(),
      {{"/model/vocab", json::array(), {"model.vocab", "a list", "an object"}},
       {"/model/vocab", nullptr, {"model.vocab", "null"}},
       {"/model/vocab/ab", "256", {"model.vocab", "\"ab\"", "whole number"}},
       {"/model/vocab/ab", 1.5, {"model.vocab", "\"ab\"", "whole number"}},
       {"/model/vocab/ab", -1, {"model.vocab", "\"ab\"", "-1", "range"}},
       {"/model/vocab/ab", 97, {"model.vocab", "\"ab\"", "\"a\"", "97"}},
       {"/model/vocab/ab", 2147483646, {"2147483646", "range", "1543"}},
       {"/model/vocab/ab", 18446744073709551615u, {"18446744073709551615"}}});
  json empty = ByteLevelJson();
  empty["model"]["vocab"] = json::object();
  empty["model"]["merges"] = json::array();
  empty["added_tokens"] = json::array();
  ExpectRefused(empty, {"model.vocab", "no tokens"});
}

TEST(HfMalformed, AddedTokens) {
  ExpectAllRefused(
      ByteLevelJson(),
      {{"/added_tokens", "x", {"added_tokens", "a string", "a list"}},
       {"/added_tokens/0", 7, {"added_tokens[0]", "a number", "an object"}},
       {"/added_tokens/0/content",
        nullptr,
        {"added_tokens[0].content", "null"}},
       {"/added_tokens/0/special", 1, {"added_tokens[0].special", "a number"}},
       {"/added_tokens/0/id", 97, {"added_tokens[0]", "<end>", "\"a\"", "97"}},
       {"/added_tokens/0/id", -5, {"added_tokens[0]", "<end>", "-5"}},
       {"/added_tokens/0/content", "ab", {"added_tokens[0]", "259", "256"}}});
  json without_id = ByteLevelJson();
  without_id["added_tokens"][0].erase("id");
  ExpectRefused(without_id, {"added_tokens[0]", "\"id\" is missing"});
}

TEST(HfMalformed, Merges) {
  ExpectAllRefused(
      ByteLevelJson(),
      {{"/model/merges", json::object(), {"model.merges", "an object", "list"}},
       {"/model/merges/1", 5, {"model.merges", "merge 1", "5", "two tokens"}},
       {"/model/merges/1", "ab", {"merge 1", "\"ab\"", "two tokens"}},
       {"/model/merges/1", "a b c", {"merge 1", "\"a b c\"", "two tokens"}},
       {"/model/merges/1", " a", {"merge 1", "neither empty"}},
       {"/model/merges/1", {"a"}, {"merge 1", "two tokens"}},
       {"/model/merges/1", {"a", 1}, {"merge 1", "two tokens"}},
       {"/model/merges/1", "a zz", {"merge 1", "second part", "vocabulary"}},
       {"/model/merges/1", "zz a", {"merge 1", "first part", "vocabulary"}},
       {"/model/merges/1", "b a", {"merge 1", "what it makes", "vocabulary"}}});
}

TEST(HfMalformed, StepsOfText) {
  const json regex = {{"type", "Split"},
                      {"pattern", {{"Regex", "(unclosed"}}},
                      {"behavior", "Isolated"}};
  const json behavior = {{"type", "Split"},
                         {"pattern", {{"String", "a"}}},
                         {"behavior", "Vanished"}};
  const json two_patterns = {{"type", "Replace"},
                             {"pattern", {{"String", "a"}, {"Regex", "a"}}},
                             {"content", ""}};
  const json after_bytes = {
      {"type", "Sequence"},
      {"pretokenizers", {{{"type", "ByteLevel"}}, {{"type", "Digits"}}}}};
  ExpectAllRefused(
      ByteLevelJson(),
      {{"/normalizer",
        {{"type", "Precompiled"}},
        {"normalizer", "Precompiled", "NFC", "Sequence"}},
       {"/normalizer", {{"type", "BertNormalizer"}}, {"BertNormalizer"}},
       {"/normalizer", "NFC", {"normalizer", "a string", "an object"}},
       {"/normalizer", json::object(), {"normalizer", "\"type\" is missing"}},
       {"/normalizer", two_patterns, {"normalizer.pattern", "either"}},
       {"/normalizer",
        {{"type", "Sequence"}, {"normalizers", {{{"type", "Nmt"}}}}},
        {"normalizer.normalizers[0]", "Nmt"}},
       {"/pre_tokenizer",
        {{"type", "BertPreTokenizer"}},
        {"pre_tokenizer", "BertPreTokenizer", "ByteLevel", "Split"}},
       {"/pre_tokenizer", {{"type", "Whitespace"}}, {"Whitespace"}},
       {"/pre_tokenizer", regex, {"pre_tokenizer.pattern.Regex", "(unclosed"}},
       {"/pre_tokenizer", behavior, {"Vanished", "MergedWithPrevious"}},
       {"/pre_tokenizer", after_bytes, {"pretokenizers[1]", "ByteLevel"}},
       {"/pre_tokenizer",
        {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "no"}},
        {"prepend_scheme", "\"no\"", "always"}},
       {"/pre_tokenizer", nullptr, {"decoder is ByteLevel"}}});
}

TEST(HfMalformed, DecoderAndPostProcessor) {
  const json strip = {
      {"type", "Sequence"},
      {"decoders",
       {{{"type", "Fuse"}},
        {{"type", "Strip"}, {"content", "x"}, {"start", 1}, {"stop", 0}}}}};
  const json unfused = {
      {"type", "Sequence"},
      {"decoders",
       {{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  const auto template_of = [](const json& single, const json& ids) {
    return json{{"type", "TemplateProcessing"},
                {"single", single},
                {"special_tokens", {{"s", {{"ids", ids}}}}}};
  };
  const json text = {{"Sequence", {{"id", "A"}}}};
  const json start = {{"SpecialToken", {{"id", "s"}}}};
  const json stranger = {{"SpecialToken", {{"id", "t"}}}};
  const json many = {1000};
  ExpectAllRefused(
      SentencePieceJson(),
      {{"/decoder", nullptr, {"decoder", "null", "ByteLevel"}},
       {"/decoder", {{"type", "WordPiece"}}, {"decoder", "WordPiece"}},
       {"/decoder", {{"type", "ByteLevel"}}, {"both or neither"}},
       {"/decoder", strip, {"decoder.decoders[1]", "\"x\""}},
       {"/decoder", unfused, {"decoder.decoders[0]", "Strip"}},
       {"/post_processor",
        {{"type", "BertProcessing"}},
        {"post_processor", "BertProcessing", "TemplateProcessing"}},
       {"/post_processor",
        template_of(json::array({start}), {1}),
        {"single", "0 times"}},
       {"/post_processor", template_of({text, text}, {1}), {"2 times"}},
       {"/post_processor",
        template_of({stranger, text}, {1}),
        {"special_tokens", "\"t\" is missing"}},
       {"/post_processor",
        template_of({start, text}, many),
        {"special_tokens.s.ids[0]", "1000", "0 to 263"}},
       {"/post_processor",
        template_of({start, text}, {-1}),
        {"ids[0]", "-1"}}});
}

TEST(HfMalformed, EveryKeyThatIsNeeded) {
  for (const char* key : {"model", "decoder"}) {
    json tokenizer = ByteLevelJson();
    tokenizer.erase(key);
    ExpectRefused(tokenizer, {absl::StrCat("\"", key, "\" is missing")});
  }
  for (const char* key : {"vocab", "merges"}) {
    json tokenizer = ByteLevelJson();
    tokenizer["model"].erase(key);
    ExpectRefused(tokenizer,
                  {"model", absl::StrCat("\"", key, "\" is missing")});
  }
  ExpectRefused(json::array(), {"a list", "an object"});
  ExpectRefused("text", {"a string", "an object"});
}

TEST(HfMalformed, TextThatIsNoJson) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("{\"model\": }"),
        std::string(100'000, '['), std::string("\xFF"),
        ByteLevelJson().dump() + "x"}) {
    const auto opened = OpenHandMadeHfFiles(text, "{}");
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(opened.status().message()),
                HasSubstr("tokenizer.json"));
  }
  json deep = {{"type", "NFC"}};
  for (int i = 0; i < 100; ++i) {
    deep = {{"type", "Sequence"}, {"normalizers", {deep}}};
  }
  json tokenizer = ByteLevelJson();
  tokenizer["normalizer"] = deep;
  ExpectRefused(tokenizer, {"nested"});
}

TEST(HfMalformed, Config) {
  for (const char* config :
       {R"({"bos_token": 5})", R"({"eos_token": {"text": "x"}})",
        R"({"add_bos_token": "yes"})", R"([])", R"({"eos_token": "zz"})"}) {
    const auto opened = OpenHandMadeHfFiles(ByteLevelJson().dump(), config);
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument)
        << config;
    EXPECT_THAT(std::string(opened.status().message()),
                HasSubstr("hand-made/tokenizer_config.json"));
  }
}

// Cut at every byte, a file is an error and nothing worse.
TEST(HfMalformed, CutAnywhere) {
  const std::string text = SentencePieceJson().dump();
  const size_t step = kSanitized ? 37 : 5;
  for (size_t size = 0; size < text.size(); size += step) {
    EXPECT_FALSE(OpenHandMadeHfFiles(text.substr(0, size), "{}").ok()) << size;
  }
}

}  // namespace
}  // namespace folio
