#include "runtime/tokenizer/code_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "runtime/base/utf8.h"
#include "tests/runtime/tokenizer/hand_made.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CodePoints, FrontAndBackReadWhatAppendWrites) {
  for (uint32_t code = 0; code <= 0x10FFFF; code += code < 0x1000 ? 1 : 61) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text = "x";
    AppendUtf8(code, text);
    ASSERT_TRUE(IsValidUtf8(text)) << std::hex << code;
    EXPECT_EQ(BackCodePoint(text).value, code);
    EXPECT_EQ(BackCodePoint(text).length, text.size() - 1);
    EXPECT_EQ(FrontCodePoint(text.substr(1)).value, code);
    EXPECT_EQ(FrontCodePoint(text.substr(1)).length, text.size() - 1);
  }
}

TEST(CodePoints, CheckNamesByteAndOffset) {
  EXPECT_TRUE(CheckUtf8("").ok());
  EXPECT_TRUE(CheckUtf8("plain and \u20AC").ok());
  const std::string before = "0123456789\u20AC";  // Across the steps of 8.
  for (const char* bad : {"\xFF", "\xE2\x82", "\xED\xA0\x80", "\xC0\xAF"}) {
    const absl::Status status = CheckUtf8(before + bad);
    ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("UTF-8"), HasSubstr("offset 13")));
  }
  EXPECT_THAT(std::string(CheckUtf8("a\xFF").message()), HasSubstr("0xff"));
}

TEST(CodePoints, CheckAgreesWithTheByteWiseOne) {
  for (int seed = 0; seed < 500; ++seed) {
    std::string text = RandomText(seed, 40);
    if (seed % 2 == 0 && !text.empty()) text[seed % text.size()] ^= 0x80;
    EXPECT_EQ(CheckUtf8(text).ok(), IsValidUtf8(text)) << "seed " << seed;
  }
}

// The list of Unicode's PropList.txt.
TEST(CodePoints, WhiteSpaceIsUnicodes) {
  std::set<uint32_t> expected = {0x20,   0x85,   0xA0,   0x1680, 0x2028,
                                 0x2029, 0x202F, 0x205F, 0x3000};
  for (uint32_t code = 0x09; code <= 0x0D; ++code) expected.insert(code);
  for (uint32_t code = 0x2000; code <= 0x200A; ++code) expected.insert(code);
  for (uint32_t code = 0; code <= 0x10FFFF; ++code) {
    EXPECT_EQ(IsWhiteSpace(code), expected.contains(code)) << std::hex << code;
  }
}

TEST(CodePoints, WordCharacters) {
  for (const uint32_t code : {U'a', U'Z', U'5', U'_', U'\u00E9', U'\u0301',
                              U'\u4E00', U'\u0967', U'\u2167'}) {
    EXPECT_TRUE(IsWordCharacter(code)) << std::hex << code;
  }
  for (const uint32_t code :
       {U' ', U'-', U'.', U'\u00A0', U'\u20AC', U'\u2014', U'\U0001F600'}) {
    EXPECT_FALSE(IsWordCharacter(code)) << std::hex << code;
  }
}

}  // namespace
}  // namespace folio
