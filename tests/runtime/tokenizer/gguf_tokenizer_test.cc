// What tokenizer.ggml.* describes, on small files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "absl/strings/str_format.h"
#include "runtime/tokenizer/detokenizer.h"
#include "tests/runtime/tokenizer/hand_made.h"
#include "tests/support/gguf_builder.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int32_t kNormal = 1;
constexpr int32_t kUnknown = 2;
constexpr int32_t kControl = 3;
constexpr int32_t kUserDefined = 4;
constexpr int32_t kUnused = 5;
constexpr int32_t kByte = 6;

// The lists of a vocabulary, to be changed before they are written.
struct Lists {
  std::string model;
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<float> scores;
  std::vector<std::string> merges;
  std::string pre = {};

  void Add(const std::string& text, int32_t type, float score = 0) {
    tokens.push_back(text);
    types.push_back(type);
    scores.push_back(score);
  }
  GgufBuilder Builder() const {
    GgufBuilder builder;
    builder.Add("general.architecture", "llama");
    builder.Add("tokenizer.ggml.model", std::string_view(model));
    builder.AddArray("tokenizer.ggml.tokens", tokens);
    builder.AddArray("tokenizer.ggml.token_type", types);
    if (!scores.empty()) builder.AddArray("tokenizer.ggml.scores", scores);
    if (!pre.empty()) {
      builder.Add("tokenizer.ggml.pre", std::string_view(pre));
    }
    if (!merges.empty()) builder.AddArray("tokenizer.ggml.merges", merges);
    return builder;
  }
};

// Split as `pre` says. Byte i is token i; then "ab" 256, "abc" 257, " ab" 258,
// "<end>" 259 (control), "<tool>" 260 (user-defined), "12345" 261.
Lists ByteLevelLists(const std::string& pre) {
  Lists lists{.model = "gpt2", .pre = pre};
  for (int byte = 0; byte < 256; ++byte) {
    lists.Add(InByteLevelAlphabet(std::string(1, static_cast<char>(byte))),
              kNormal);
  }
  const std::string space = InByteLevelAlphabet(" ");
  lists.Add("ab", kNormal);
  lists.Add("abc", kNormal);
  lists.Add(space + "ab", kNormal);
  lists.Add("<end>", kControl);
  lists.Add("<tool>", kUserDefined);
  lists.Add("123", kNormal);
  lists.scores.clear();
  lists.merges = {"a b", "ab c", space + " ab"};
  return lists;
}

// <unk> 0, <s> 1, </s> 2, byte i is 3 + i; then those of the test.
Lists SentencePieceLists() {
  Lists lists{.model = "llama"};
  lists.Add("<unk>", kUnknown);
  lists.Add("<s>", kControl);
  lists.Add("</s>", kControl);
  for (int byte = 0; byte < 256; ++byte) {
    lists.Add(absl::StrFormat("<0x%02X>", byte), kByte);
  }
  return lists;
}

std::unique_ptr<Tokenizer> Open(const GgufBuilder& builder) {
  auto opened = OpenHandMadeGguf(builder.Build());
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

TEST(GgufTokenizer, ByteLevel) {
  const auto tokenizer = Open(ByteLevelLists("gpt-2").Builder());
  EXPECT_THAT(Encoded(*tokenizer, "abc ab!"), ElementsAre(257, 258, '!'));
  EXPECT_THAT(Encoded(*tokenizer, "a<tool>b"), ElementsAre('a', 260, 'b'));
  EXPECT_THAT(Encoded(*tokenizer, "<end>"),
              ElementsAre('<', 'e', 'n', 'd', '>'));
  EXPECT_THAT(Encoded(*tokenizer, "<end>", {.parse_special = true}),
              ElementsAre(259));
  EXPECT_THAT(Encoded(*tokenizer, "123"), ElementsAre('1', '2', '3'));
  EXPECT_EQ(Decode(*tokenizer, std::vector<TokenId>{258, 259, 260, 0xC3, 0xA9}),
            " ab<tool>\u00E9");
  const TokenizerInfo& info = tokenizer->info();
  EXPECT_EQ(info.kind, "byte-level BPE");
  EXPECT_EQ(info.pre_tokenizer, "gpt-2");
  EXPECT_EQ(info.vocab_size, 262);
  EXPECT_EQ(info.num_merges, 3);
  EXPECT_EQ(info.num_special_tokens, 1);
  EXPECT_FALSE(tokenizer->adds_leading_space());
}

TEST(GgufTokenizer, Llama3TakesWholePiecesAndAddsBos) {
  GgufBuilder builder = ByteLevelLists("llama-bpe").Builder();
  builder.Add("tokenizer.ggml.bos_token_id", uint32_t{259});
  const auto tokenizer = Open(builder);
  EXPECT_THAT(Encoded(*tokenizer, "1234"), ElementsAre(261, '4'));
  EXPECT_THAT(Encoded(*tokenizer, "ab", {.add_special = true}),
              ElementsAre(259, 256));
}

TEST(GgufTokenizer, Qwen2ComposesText) {
  const auto tokenizer = Open(ByteLevelLists("qwen2").Builder());
  EXPECT_THAT(Encoded(*tokenizer, "e\u0301"), ElementsAre(0xC3, 0xA9));
}

TEST(GgufTokenizer, FilesWithoutAPreTokenizerAreSplitAsGpt2) {
  const auto tokenizer = Open(ByteLevelLists("").Builder());
  EXPECT_EQ(tokenizer->info().pre_tokenizer, "gpt-2");
}

TEST(GgufTokenizer, WhatComesAroundAText) {
  GgufBuilder builder = ByteLevelLists("gpt-2").Builder();
  builder.Add("tokenizer.ggml.bos_token_id", uint32_t{65});
  builder.Add("tokenizer.ggml.eos_token_id", uint32_t{66});
  builder.Add("tokenizer.ggml.eot_token_id", uint32_t{67});
  builder.Add("tokenizer.ggml.eom_token_id", uint32_t{66});
  {
    const auto tokenizer = Open(builder);
    EXPECT_EQ(tokenizer->info().bos_token, 65);
    EXPECT_THAT(tokenizer->info().eos_tokens, ElementsAre(66, 67));
    EXPECT_THAT(Encoded(*tokenizer, "x", {.add_special = true}),
                ElementsAre('x'));
  }
  builder.Add("tokenizer.ggml.add_bos_token", true);
  builder.Add("tokenizer.ggml.add_eos_token", true);
  EXPECT_THAT(Encoded(*Open(builder), "x", {.add_special = true}),
              ElementsAre(65, 'x', 66));
}

// By hand: "abc" could be ab + c or a + bc; the higher score is joined first.
TEST(GgufTokenizer, SentencePieceJoinsByScore) {
  Lists lists = SentencePieceLists();
  for (const char* text : {"a", "b", "c", "\u2581"}) {
    lists.Add(text, kNormal, -100);  // 259 to 262
  }
  lists.Add("ab", kNormal, -2);  // 263
  lists.Add("bc", kNormal, -1);  // 264
  lists.Add(
      "\u2581"
      "ab",
      kNormal, -5);              // 265
  lists.Add("cb", kNormal, -1);  // 266
  const auto tokenizer = Open(lists.Builder());
  EXPECT_EQ(tokenizer->info().kind, "SentencePiece BPE");
  EXPECT_TRUE(tokenizer->adds_leading_space());
  EXPECT_THAT(Encoded(*tokenizer, "abc"), ElementsAre(262, 259, 264));
  EXPECT_THAT(Encoded(*tokenizer, "ab ab"), ElementsAre(265, 265));
  // Equal scores: the leftmost.
  EXPECT_THAT(Encoded(*tokenizer, "bcb"), ElementsAre(262, 264, 260));
  EXPECT_THAT(Encoded(*tokenizer, "cbc"), ElementsAre(262, 266, 261));
  EXPECT_THAT(Encoded(*tokenizer, "\u00E9"),
              ElementsAre(262, 3 + 0xC3, 3 + 0xA9));
  EXPECT_THAT(Encoded(*tokenizer, ""), IsEmpty());
  EXPECT_EQ(Decode(*tokenizer, Encoded(*tokenizer, " ab\u00E9 b")),
            " ab\u00E9 b");
}

TEST(GgufTokenizer, SentencePieceSpecialTokensAreNoText) {
  Lists lists = SentencePieceLists();
  lists.Add("<s", kNormal, -1);  // 259; with ">" it would be BOS.
  lists.Add("<", kNormal, -1);
  lists.Add("s", kNormal, -1);
  lists.Add(">", kNormal, -1);       // 262
  lists.Add("\u2581", kNormal, -1);  // 263
  lists.Add("xy", kUnused, 0);
  lists.Add("x", kNormal, -1);        // 265
  lists.Add("y", kNormal, -1);        // 266
  lists.Add("[u]", kUserDefined, 0);  // 267
  GgufBuilder builder = lists.Builder();
  builder.Add("tokenizer.ggml.bos_token_id", uint32_t{1});
  builder.Add("tokenizer.ggml.eos_token_id", uint32_t{2});
  const auto tokenizer = Open(builder);
  EXPECT_THAT(Encoded(*tokenizer, "<s>"), ElementsAre(263, 259, 262));
  EXPECT_THAT(Encoded(*tokenizer, "<s>", {.parse_special = true}),
              ElementsAre(1));
  EXPECT_THAT(Encoded(*tokenizer, "xy"), ElementsAre(263, 265, 266));
  EXPECT_THAT(Encoded(*tokenizer, "x", {.add_special = true}),
              ElementsAre(1, 263, 265));
  // After a token found in the text, a word begins anew.
  EXPECT_THAT(Encoded(*tokenizer, "x[u]x"),
              ElementsAre(263, 265, 267, 263, 265));
  EXPECT_EQ(Decode(*tokenizer, std::vector<TokenId>{1, 263, 265, 267, 2}),
            "x[u]");
}

TEST(GgufTokenizer, SentencePieceSpaces) {
  Lists lists = SentencePieceLists();
  lists.Add("a", kNormal);       // 259
  lists.Add("\u2581", kNormal);  // 260
  GgufBuilder plain = lists.Builder();
  plain.Add("tokenizer.ggml.add_space_prefix", false);
  EXPECT_THAT(Encoded(*Open(plain), " a  a"),
              ElementsAre(260, 259, 260, 260, 259));
  EXPECT_FALSE(Open(plain)->adds_leading_space());
  GgufBuilder removing = lists.Builder();
  removing.Add("tokenizer.ggml.remove_extra_whitespaces", true);
  EXPECT_THAT(Encoded(*Open(removing), "  a   a "),
              ElementsAre(260, 259, 260, 259));
}

TEST(GgufTokenizer, SentencePieceUnknownCharacters) {
  Lists lists{.model = "llama"};
  lists.Add("<unk>", kUnknown);
  lists.Add("\u2581", kNormal);
  const auto tokens = Open(lists.Builder())->Encode("a\u20AC", {});
  ASSERT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tokens.status().message()), HasSubstr("\"a\""));
  EXPECT_THAT(Encoded(*Open(lists.Builder().Add(
                          "tokenizer.ggml.unknown_token_id", uint32_t{0})),
                      "a\u20AC"),
              ElementsAre(1, 0, 0));
}

TEST(GgufTokenizer, RefusesOtherKindsByName) {
  for (const char* model : {"bert", "t5", "rwkv", "plamo2"}) {
    const auto opened = OpenHandMadeGguf(
        GgufBuilder().Add("tokenizer.ggml.model", model).Build());
    ASSERT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
    for (const char* word : {"hand-made.gguf", "tokenizer.ggml.model", model,
                             "gpt2, llama and no_vocab"}) {
      EXPECT_THAT(std::string(opened.status().message()), HasSubstr(word));
    }
  }
  EXPECT_EQ(OpenHandMadeGguf(GgufBuilder().Build()).status().code(),
            absl::StatusCode::kNotFound);
}

// A file for token ids alone says how many there are.
TEST(GgufTokenizer, OpensNoVocabulary) {
  const auto file = [](int32_t size) {
    return GgufBuilder()
        .Add("general.architecture", "llama")
        .Add("llama.vocab_size", size)
        .Add("tokenizer.ggml.model", "no_vocab")
        .Build();
  };
  const auto opened = OpenHandMadeGguf(file(7));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->info().vocab_size, 7);
  EXPECT_EQ((*opened)->Encode("a", {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const absl::Status none = OpenHandMadeGguf(file(0)).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(none.message()), HasSubstr("llama.vocab_size"));
}

// Changes to good lists, and what the message must say.
struct Malformed {
  std::function<void(Lists&, GgufBuilder&)> change;
  std::vector<std::string> words;
};

void ExpectAllRefused(const Lists& good, const std::vector<Malformed>& cases) {
  for (const Malformed& malformed : cases) {
    SCOPED_TRACE(malformed.words.back());
    Lists lists = good;
    GgufBuilder unused;
    malformed.change(lists, unused);  // The lists, which are written now.
    GgufBuilder builder = lists.Builder();
    malformed.change(lists, builder);  // Further keys.
    const auto opened = OpenHandMadeGguf(builder.Build());
    ASSERT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument)
        << opened.status();
    const std::string message(opened.status().message());
    EXPECT_THAT(message, HasSubstr("hand-made.gguf"));
    for (const std::string& word : malformed.words) {
      EXPECT_THAT(message, HasSubstr(word));
    }
  }
}

TEST(GgufTokenizer, MalformedByteLevel) {
  ExpectAllRefused(ByteLevelLists("gpt-2"),
                   {{[](Lists& l, GgufBuilder&) { l.pre = "tekken"; },
                     {"tokenizer.ggml.pre", "llama-bpe", "tekken"}},
                    {[](Lists& l, GgufBuilder&) { l.types.resize(261); },
                     {"tokenizer.ggml.token_type", "261 types", "262 tokens"}},
                    {[](Lists& l, GgufBuilder&) { l.types[5] = 7; },
                     {"tokenizer.ggml.token_type", "token 5", "type 7"}},
                    {[](Lists& l, GgufBuilder&) { l.tokens[5] = "\xFF"; },
                     {"tokenizer.ggml.tokens", "token 5", "UTF-8"}},
                    {[](Lists& l, GgufBuilder&) { l.merges[1] = "ab"; },
                     {"tokenizer.ggml.merges", "merge 1", "two tokens"}},
                    {[](Lists& l, GgufBuilder&) { l.merges[1] = "ab \xFF"; },
                     {"tokenizer.ggml.merges", "merge 1", "UTF-8"}},
                    {[](Lists& l, GgufBuilder&) { l.merges[1] = "ab zz"; },
                     {"merge 1", "tokenizer.ggml.tokens", "second part"}},
                    {[](Lists& l, GgufBuilder&) { l.merges[1] = "zz ab"; },
                     {"merge 1", "first part"}},
                    {[](Lists& l, GgufBuilder&) { l.merges[1] = "b a"; },
                     {"merge 1", "what it makes"}},
                    {[](Lists&, GgufBuilder& b) {
                       b.Add("tokenizer.ggml.bos_token_id", uint32_t{262});
                     },
                     {"tokenizer.ggml.bos_token_id", "262", "0 to 261"}},
                    {[](Lists&, GgufBuilder& b) {
                       b.Add("tokenizer.ggml.eos_token_id", int32_t{-1});
                     },
                     {"tokenizer.ggml.eos_token_id", "-1"}},
                    {[](Lists&, GgufBuilder& b) {
                       b.Add("tokenizer.ggml.add_bos_token", "yes");
                     },
                     {"tokenizer.ggml.add_bos_token"}}});
}

TEST(GgufTokenizer, MalformedSentencePiece) {
  Lists good = SentencePieceLists();
  good.Add("a", kNormal);
  ExpectAllRefused(
      good,
      {{[](Lists& l, GgufBuilder&) { l.scores.pop_back(); },
        {"tokenizer.ggml.scores", "259 scores", "260 tokens"}},
       {[](Lists& l, GgufBuilder&) {
          l.scores[7] = std::numeric_limits<float>::quiet_NaN();
        },
        {"tokenizer.ggml.scores", "token 7", "finite"}},
       {[](Lists& l, GgufBuilder&) { l.tokens[9] = "<0xZZ>"; },
        {"tokenizer.ggml.tokens", "token 9", "<0xZZ>"}},
       {[](Lists& l, GgufBuilder&) { l.tokens[259] = std::string(5000, 'a'); },
        {"tokenizer.ggml.tokens", "token 259", "5000 bytes"}},
       {[](Lists&, GgufBuilder& b) {
          b.Add("tokenizer.ggml.unknown_token_id", uint32_t{260});
        },
        {"tokenizer.ggml.unknown_token_id", "260"}}});
}

}  // namespace
}  // namespace folio
