#include "runtime/base/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "tests/support/sanitized.h"

namespace folio {
namespace {

// The encoding's definition, from a code point.
std::string Encode(uint32_t c) {
  const auto tail = [c](int shift) {
    return static_cast<char>(0x80 | (c >> shift & 0x3F));
  };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xC0 | c >> 6), tail(0)};
  if (c < 0x10000) {
    return {static_cast<char>(0xE0 | c >> 12), tail(6), tail(0)};
  }
  return {static_cast<char>(0xF0 | c >> 18), tail(12), tail(6), tail(0)};
}

// Every well-formed character, and every proper prefix of one.
struct Truth {
  std::set<std::string> characters;
  std::set<std::string> prefixes;
};

const Truth& GetTruth() {
  static const Truth* const truth = [] {
    auto* all = new Truth;
    for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      // Four-byte characters differ from their neighbours only in the last six
      // bits in ways that the other lengths show; keep the edges of each row.
      if (c >= 0x10000 && (c & 0x3F) != 0 && (c & 0x3F) != 0x3F) continue;
      const std::string bytes = Encode(c);
      all->characters.insert(bytes);
      for (size_t i = 1; i < bytes.size(); ++i) {
        all->prefixes.insert(bytes.substr(0, i));
      }
    }
    return all;
  }();
  return *truth;
}

TEST(FrontOfUtf8, KnowsEveryCharacterAndItsPrefixes) {
  for (const std::string& character : GetTruth().characters) {
    for (const char* after : {"", "x", "\x80", "\xFF"}) {
      const Utf8Front front = FrontOfUtf8(character + after);
      ASSERT_EQ(front.kind, Utf8Kind::kCharacter) << character;
      ASSERT_EQ(front.length, character.size()) << character;
    }
  }
  for (const std::string& prefix : GetTruth().prefixes) {
    const Utf8Front front = FrontOfUtf8(prefix);
    ASSERT_EQ(front.kind, Utf8Kind::kIncomplete);
    ASSERT_EQ(front.length, prefix.size());
    ASSERT_FALSE(IsValidUtf8(prefix));
  }
}

// A maximal subpart is the longest prefix of a character that is there, or one
// byte: the definition, applied to every string of three bytes.
TEST(FrontOfUtf8, ReplacesMaximalSubparts) {
  const Truth& truth = GetTruth();
  constexpr int kStride = kSanitized ? 601 : 9;
  for (int i = 0; i < 1 << 24; i += i % 8 == 7 ? kStride : 1) {
    const std::string bytes = {static_cast<char>(i >> 16),
                               static_cast<char>(i >> 8), static_cast<char>(i)};
    const Utf8Front front = FrontOfUtf8(bytes);
    const std::string taken = bytes.substr(0, front.length);
    switch (front.kind) {
      case Utf8Kind::kCharacter:
        ASSERT_TRUE(truth.characters.contains(taken)) << i;
        break;
      case Utf8Kind::kIncomplete:
        ASSERT_EQ(taken, bytes) << i;
        ASSERT_TRUE(truth.prefixes.contains(bytes)) << i;
        break;
      case Utf8Kind::kInvalid:
        ASSERT_FALSE(truth.characters.contains(taken)) << i;
        ASSERT_TRUE(front.length == 1 || truth.prefixes.contains(taken)) << i;
        if (front.length < bytes.size()) {
          const std::string longer = bytes.substr(0, front.length + 1);
          ASSERT_FALSE(truth.characters.contains(longer)) << i;
          ASSERT_FALSE(truth.prefixes.contains(longer)) << i;
        }
        break;
    }
  }
}

TEST(IsValidUtf8, JudgesWholeStrings) {
  EXPECT_TRUE(IsValidUtf8(""));
  EXPECT_TRUE(IsValidUtf8("na\u00EFve \u20AC \U0001F600"));
  EXPECT_TRUE(IsValidUtf8(kReplacementCharacter));
  EXPECT_FALSE(IsValidUtf8("a\x80"));
  EXPECT_FALSE(IsValidUtf8("\xC0\xAF"));
  EXPECT_FALSE(IsValidUtf8("\xED\xA0\x80"));
  EXPECT_FALSE(IsValidUtf8("\xF4\x90\x80\x80"));
}

TEST(FrontOfUtf8Death, NeedsAByte) { EXPECT_DEATH(FrontOfUtf8(""), "empty"); }

}  // namespace
}  // namespace folio
