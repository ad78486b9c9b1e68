#include "runtime/tokenizer/byte_level_alphabet.h"

#include <gtest/gtest.h>

#include "tests/runtime/tokenizer/hand_made.h"

namespace folio {
namespace {

TEST(ByteLevelAlphabet, KnownCharacters) {
  EXPECT_EQ(BytesOfByteLevelText(""), "");
  EXPECT_EQ(BytesOfByteLevelText("Hello!"), "Hello!");
  EXPECT_EQ(BytesOfByteLevelText("\u0120the"), " the");
  EXPECT_EQ(BytesOfByteLevelText("\u010A"), "\n");
  EXPECT_EQ(BytesOfByteLevelText("\u0100"), std::string(1, '\0'));
  EXPECT_EQ(BytesOfByteLevelText("\u0143"), "\xAD");
  EXPECT_EQ(BytesOfByteLevelText("\u00C3\u00A9"), "\u00E9");
  for (const char* outside :
       {" ", "\n", "\u00A0", "\u00AD", "\u0144", "\u2581", "a\U0001F600"}) {
    EXPECT_EQ(BytesOfByteLevelText(outside), std::nullopt) << outside;
  }
}

TEST(ByteLevelAlphabet, EveryByteHasACharacter) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    EXPECT_EQ(BytesOfByteLevelText(InByteLevelAlphabet(bytes)), bytes) << byte;
  }
}

}  // namespace
}  // namespace folio
