#include "runtime/tokenizer/detokenizer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/tokenizer/byte_tokenizer.h"
#include "tests/runtime/tokenizer/hand_made.h"

namespace folio {
namespace {

constexpr char kFffd[] = "\xEF\xBF\xBD";

// An independent decoder: by code points and arithmetic, where the runtime's
// goes by tables of lead bytes. Returns the code point at the front of `bytes`,
// when a character of exactly `length` bytes is there.
std::optional<uint32_t> CharacterAt(std::string_view bytes, size_t length) {
  static constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (bytes.size() < length) return std::nullopt;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  uint32_t code = byte(0);
  if (length > 1) {
    const int marker = 0xF0 << (4 - length) & 0xFF;  // 110, 1110 or 11110.
    const int mask = marker >> 1 | 0x80;
    if ((byte(0) & mask) != marker) return std::nullopt;
    code = byte(0) & ~mask;
  } else if (code >= 0x80) {
    return std::nullopt;
  }
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return std::nullopt;
    code = code << 6 | (byte(i) & 0x3F);
  }
  if (code < kSmallest[length] || code > 0x10FFFF) return std::nullopt;
  if (code >= 0xD800 && code <= 0xDFFF) return std::nullopt;
  return code;
}

// Whether some bytes after `prefix` would complete a character of `length`.
bool CanBecomeCharacter(const std::string& prefix, size_t length) {
  if (prefix.size() == length) return CharacterAt(prefix, length).has_value();
  for (int next = 0x80; next <= 0xBF; ++next) {
    if (CanBecomeCharacter(prefix + static_cast<char>(next), length)) {
      return true;
    }
  }
  return false;
}

// Whether `part` is the beginning of a longer character. By trying everything,
// so answers are kept.
bool IsBeginning(const std::string& part) {
  static std::map<std::string, bool>* const answers =
      new std::map<std::string, bool>;
  const auto [it, is_new] = answers->try_emplace(part, false);
  for (size_t length = part.size() + 1; is_new && length <= 4; ++length) {
    it->second = it->second || CanBecomeCharacter(part, length);
  }
  return it->second;
}

// The length of the maximal subpart at the front of `bytes`: its longest part
// that could become a character, and at least one byte.
size_t MaximalSubpart(std::string_view bytes) {
  for (size_t part = std::min<size_t>(3, bytes.size()); part > 1; --part) {
    if (IsBeginning(std::string(bytes.substr(0, part)))) return part;
  }
  return 1;
}

std::string NaiveDecode(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    size_t taken = 0;
    for (size_t length = 1; length <= 4 && taken == 0; ++length) {
      if (CharacterAt(bytes, length).has_value()) taken = length;
    }
    if (taken > 0) {
      text += bytes.substr(0, taken);
    } else {
      taken = MaximalSubpart(bytes);
      text += kFffd;
    }
    bytes.remove_prefix(taken);
  }
  return text;
}

bool NaiveIsValid(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    size_t taken = 0;
    for (size_t length = 1; length <= 4 && taken == 0; ++length) {
      if (CharacterAt(std::string_view(text).substr(i), length).has_value()) {
        taken = length;
      }
    }
    if (taken == 0) return false;
    i += taken;
  }
  return true;
}

// Decodes bytes by byte tokens; every piece of output must be valid UTF-8, and
// no more than an incomplete character may be held back.
std::string DecodeBytes(std::string_view bytes) {
  const ByteTokenizer tokenizer(256);
  Detokenizer detokenizer(&tokenizer, TextStart::kContinuation);
  std::string text;
  for (const char byte : bytes) {
    std::string piece;
    detokenizer.Append(static_cast<uint8_t>(byte), piece);
    EXPECT_TRUE(NaiveIsValid(piece));
    text += piece;
  }
  std::string rest;
  detokenizer.Finish(rest);
  EXPECT_TRUE(NaiveIsValid(rest));
  return text + rest;
}

// Writes one U+FFFD for each '?' of `pattern`.
std::string Replaced(std::string_view pattern) {
  std::string text;
  for (const char c : pattern) {
    if (c == '?') {
      text += kFffd;
    } else {
      text += c;
    }
  }
  return text;
}

TEST(Detokenizer, ReplacesByHand) {
  const struct {
    const char* bytes;
    const char* expected;
  } kCases[] = {
      {"", ""},
      {"plain", "plain"},
      {"\x80", "?"},
      {"a\xFF"
       "b",
       "a?b"},
      {"\xC0\xAF", "??"},  // Overlong '/', two bytes.
      {"\xC1\xBF", "??"},
      {"\xE0\x80\xAF", "???"},                 // Overlong, three bytes.
      {"\xF0\x80\x80\xAF", "????"},            // Overlong, four bytes.
      {"\xED\xA0\x80", "???"},                 // A high surrogate.
      {"\xED\xBF\xBF", "???"},                 // A low one.
      {"\xED\xA0\xBD\xED\xB8\x80", "??????"},  // A pair, as CESU-8 has it.
      {"\xF4\x90\x80\x80", "????"},            // Above U+10FFFF.
      {"\xF5\x80\x80\x80", "????"},
      {"\xC3", "?"},  // Truncated ends: one each.
      {"\xE2\x82", "?"},
      {"\xF0\x9F\x98", "?"},
      {"\xF0\x9F\x98\xF0\x9F\x98", "??"},
      {"\xE2\x82"
       "a",
       "?a"},
      {"\xE2\xE2\x82", "??"},
      // Unicode 15, table 3-8.
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", "????????A"},
      // Table 3-9.
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", "????????A"},
      // Table 3-10.
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", "?????A??B"},
      // Table 3-11.
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "????A"},
  };
  for (const auto& [bytes, expected] : kCases) {
    SCOPED_TRACE(testing::PrintToString(std::string(bytes)));
    EXPECT_EQ(DecodeBytes(bytes), Replaced(expected));
    EXPECT_EQ(NaiveDecode(bytes), Replaced(expected)) << "the test's decoder";
  }
}

// The bytes of a code point, from the definition of the encoding.
std::string Encode(uint32_t code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  const int num_tails = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static constexpr int kMarkers[] = {0, 0xC0, 0xE0, 0xF0};
  std::string bytes(
      1, static_cast<char>(kMarkers[num_tails] | code >> 6 * num_tails));
  for (int i = num_tails - 1; i >= 0; --i) {
    bytes.push_back(static_cast<char>(0x80 | (code >> 6 * i & 0x3F)));
  }
  return bytes;
}

TEST(Detokenizer, KeepsEveryWellFormedCharacter) {
  // Every code point of the first planes' alphabets, and a sample of the rest.
  for (uint32_t code = 0; code <= 0x10FFFF; code += code < 0x3000 ? 1 : 251) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    ASSERT_EQ(DecodeBytes(Encode(code)), Encode(code)) << std::hex << code;
  }
}

TEST(Detokenizer, HoldsBackWhatMayBecomeACharacter) {
  const ByteTokenizer tokenizer(256);
  Detokenizer detokenizer(&tokenizer, TextStart::kContinuation);
  const auto append = [&](int byte) {
    std::string text;
    detokenizer.Append(byte, text);
    return text;
  };
  EXPECT_EQ(append(0xF0), "");
  EXPECT_EQ(append(0x9F), "");
  EXPECT_EQ(append(0x98), "");
  EXPECT_EQ(append(0x80), "\U0001F600");
  EXPECT_EQ(append(0xE2), "");
  EXPECT_EQ(append('a'), Replaced("?a"));
  EXPECT_EQ(append(0xC3), "");
  std::string text;
  detokenizer.Finish(text);
  EXPECT_EQ(text, kFffd);
  EXPECT_EQ(append('b'), "b") << "as good as new";
  text.clear();
  detokenizer.Finish(text);
  EXPECT_EQ(text, "");
}

// Tokens without bytes may come anywhere, as special tokens do.
TEST(Detokenizer, TokensWithoutBytesChangeNothing) {
  const ByteTokenizer tokenizer(300);
  Detokenizer detokenizer(&tokenizer, TextStart::kContinuation);
  std::string text;
  for (const TokenId token : {299, 0xC3, 256, 0xA9, 257}) {
    detokenizer.Append(token, text);
  }
  detokenizer.Finish(text);
  EXPECT_EQ(text, "\u00E9");
}

// However a reader cuts the token stream, the concatenation is the same.
TEST(Detokenizer, GroupingChangesNothing) {
  const std::string bytes =
      "\U0001F469\u200D\U0001F4BB\xF0\x9F\xED\xA0\x80\xC0z\u20AC\xE2\x82";
  const std::string expected = NaiveDecode(bytes);
  const ByteTokenizer tokenizer(256);
  for (size_t first = 0; first <= bytes.size(); ++first) {
    for (size_t second = first; second <= bytes.size(); ++second) {
      Detokenizer detokenizer(&tokenizer, TextStart::kContinuation);
      std::string pieces[3];
      for (size_t i = 0; i < bytes.size(); ++i) {
        detokenizer.Append(static_cast<uint8_t>(bytes[i]),
                           pieces[(i >= first) + (i >= second)]);
      }
      detokenizer.Finish(pieces[2]);
      for (const std::string& piece : pieces) {
        ASSERT_TRUE(NaiveIsValid(piece)) << first << " " << second;
      }
      ASSERT_EQ(pieces[0] + pieces[1] + pieces[2], expected);
    }
  }
}

TEST(Detokenizer, AgreesWithTheNaiveDecoderOnRandomBytes) {
  // Bytes at the edges of the encoding's ranges come up far more often than
  // chance would have them.
  static constexpr uint8_t kEdges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F,
                                       0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0,
                                       0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1,
                                       0xF3, 0xF4, 0xF5, 0xFF};
  for (int seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    std::string bytes;
    const size_t size = random() % 40;
    const bool edges = random() % 4 != 0;
    while (bytes.size() < size) {
      bytes += static_cast<char>(edges ? kEdges[random() % std::size(kEdges)]
                                       : random() % 256);
    }
    ASSERT_EQ(DecodeBytes(bytes), NaiveDecode(bytes))
        << "seed " << seed << ", bytes " << testing::PrintToString(bytes);
  }
}

// What any grouping of a token sequence must give: all its bytes at once.
std::string DecodeAtOnce(const Tokenizer& tokenizer,
                         const std::vector<TokenId>& tokens) {
  std::string bytes;
  for (const TokenId token : tokens) tokenizer.AppendBytes(token, bytes);
  return NaiveDecode(bytes);
}

// Any tokens in any order, as a model with random weights makes them: halves of
// characters, special tokens and words mixed.
TEST(Detokenizer, RandomTokensAreTheSameOneByOneAndAtOnce) {
  const std::unique_ptr<Tokenizer> tokenizers[] = {
      *OpenHandMadeHf(ByteLevelJson()), *OpenHandMadeHf(SentencePieceJson())};
  for (const auto& tokenizer : tokenizers) {
    for (int seed = 0; seed < 300; ++seed) {
      SCOPED_TRACE(testing::Message()
                   << tokenizer->info().kind << ", seed " << seed);
      std::mt19937_64 random(seed);
      std::vector<TokenId> tokens(random() % 30);
      for (TokenId& token : tokens) {
        token = static_cast<TokenId>(random() % tokenizer->info().vocab_size);
      }
      Detokenizer detokenizer(tokenizer.get(), TextStart::kContinuation);
      std::string text;
      for (const TokenId token : tokens) {
        std::string piece;
        detokenizer.Append(token, piece);
        ASSERT_TRUE(NaiveIsValid(piece));
        text += piece;
      }
      detokenizer.Finish(text);
      ASSERT_EQ(text, DecodeAtOnce(*tokenizer, tokens));
      // At a text's start one space is taken away, where encoding puts one.
      if (tokenizer->adds_leading_space() && text.starts_with(' ')) {
        text.erase(0, 1);
      }
      ASSERT_EQ(Decode(*tokenizer, tokens), text);
    }
  }
}

TEST(Detokenizer, OnlyTheStartOfATextLosesASpace) {
  const auto tokenizer = *OpenHandMadeHf(SentencePieceJson());
  ASSERT_TRUE(tokenizer->adds_leading_space());
  const auto tokens = *tokenizer->Encode("ab ab", {.add_special = true});
  EXPECT_EQ(Decode(*tokenizer, tokens), "ab ab");
  Detokenizer inside(tokenizer.get(), TextStart::kContinuation);
  std::string text;
  for (const TokenId token : tokens) inside.Append(token, text);
  EXPECT_EQ(text, " ab ab");
  // After Finish another text starts.
  Detokenizer start(tokenizer.get(), TextStart::kStart);
  for (int repeat = 0; repeat < 2; ++repeat) {
    text.clear();
    for (const TokenId token : tokens) start.Append(token, text);
    start.Finish(text);
    EXPECT_EQ(text, "ab ab");
  }
}

TEST(DetokenizerTest, TokensThatOnlyTheModelHasHaveNoText) {
  const ByteTokenizer tokenizer(128);
  Detokenizer detokenizer(&tokenizer, TextStart::kContinuation);
  std::string text;
  for (const TokenId token : {65, 128, 50000, 66}) {
    detokenizer.Append(token, text);
  }
  detokenizer.Finish(text);
  EXPECT_EQ(text, "AB");
}

}  // namespace
}  // namespace folio
