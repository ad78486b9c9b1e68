#include "runtime/tokenizer/byte_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/tokenizer/no_tokenizer.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string BytesOf(const Tokenizer& tokenizer, TokenId token) {
  std::string bytes = "<";
  tokenizer.AppendBytes(token, bytes);
  return bytes;
}

TEST(ByteTokenizer, BytesAreTokens) {
  const ByteTokenizer tokenizer(256);
  EXPECT_THAT(*tokenizer.Encode("aB\xC3\xBF", {}),
              ElementsAre(97, 66, 0xC3, 0xBF));
  EXPECT_THAT(*tokenizer.Encode(std::string(1, '\0'), {}), ElementsAre(0));
  EXPECT_THAT(*tokenizer.Encode("", {}), IsEmpty());
}

TEST(ByteTokenizer, EveryByteComesBack) {
  for (const int vocab_size : {1, 128, 255, 256, 512}) {
    const ByteTokenizer tokenizer(vocab_size);
    for (int byte = 0; byte < std::min(vocab_size, 256); ++byte) {
      const std::string text(1, static_cast<char>(byte));
      ASSERT_THAT(*tokenizer.Encode(text, {}), ElementsAre(byte));
      ASSERT_EQ(BytesOf(tokenizer, byte), "<" + text);
    }
    for (int token = 256; token < vocab_size; ++token) {
      ASSERT_EQ(BytesOf(tokenizer, token), "<");
    }
  }
}

TEST(ByteTokenizer, NamesTheByteThatHasNoToken) {
  const ByteTokenizer small(128);
  const auto tokens = small.Encode("caf\xC3\xA9", {});
  ASSERT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(tokens.status().message()),
      AllOf(HasSubstr("0xc3"), HasSubstr("offset 3"), HasSubstr("128")));
}

TEST(ByteTokenizer, SpecialTokensStandForNoBytes) {
  const ByteTokenizer tokenizer(512, {1, 2, 400});
  EXPECT_EQ(BytesOf(tokenizer, 1), "<");
  EXPECT_EQ(BytesOf(tokenizer, 2), "<");
  EXPECT_EQ(BytesOf(tokenizer, 3), "<\x03");
  EXPECT_EQ(BytesOf(tokenizer, 400), "<");
  EXPECT_THAT(*tokenizer.Encode("\x03", {}), ElementsAre(3));
  const auto tokens = tokenizer.Encode("a\x02", {});
  ASSERT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(tokens.status().message()),
      AllOf(HasSubstr("0x02"), HasSubstr("offset 1"), HasSubstr("special")));
}

TEST(ByteTokenizer, OptionsChangeNothing) {
  const ByteTokenizer tokenizer(512, {300});
  EXPECT_THAT(
      *tokenizer.Encode("ab", {.add_special = true, .parse_special = true}),
      ElementsAre(97, 98));
  EXPECT_FALSE(tokenizer.adds_leading_space());
  EXPECT_EQ(tokenizer.info().kind, "bytes");
  EXPECT_EQ(tokenizer.info().vocab_size, 512);
  EXPECT_EQ(tokenizer.info().num_special_tokens, 1);
}

TEST(NoTokenizer, TakesAndGivesTokenIdsOnly) {
  const NoTokenizer tokenizer(128);
  const auto tokens = tokenizer.Encode("a", {});
  EXPECT_EQ(tokens.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(tokens.status().message()),
              AllOf(HasSubstr("no tokenizer"), HasSubstr("token ids")));
  EXPECT_EQ(BytesOf(tokenizer, 97), "<");
  EXPECT_EQ(tokenizer.info().vocab_size, 128);
  EXPECT_DEATH(BytesOf(tokenizer, 128), "token 128 in a vocabulary of 128");
}

TEST(ByteTokenizerDeath, HoldsCallersToTheContract) {
  EXPECT_DEATH(ByteTokenizer(0), "vocab_size > 0");
  EXPECT_DEATH(ByteTokenizer(4, {4}), "special token 4 in a vocabulary of 4");
  const ByteTokenizer tokenizer(4);
  EXPECT_DEATH(BytesOf(tokenizer, 4), "token 4 in a vocabulary of 4");
  EXPECT_DEATH(BytesOf(tokenizer, -1), "token -1");
}

}  // namespace
}  // namespace folio
