// Texts of a megabyte that are one run of one character: nothing is lost, and
// the time grows with the length.

#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <vector>

#include "runtime/tokenizer/detokenizer.h"
#include "tests/runtime/tokenizer/hand_made.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/sanitized.h"

namespace folio {
namespace {

constexpr size_t kLong = kSanitized ? 200'000 : 1'000'000;

// Byte i is token i; further tokens are 2, 4, 8 ... of each of these bytes, so
// that runs have as many merges as possible.
std::unique_ptr<Tokenizer> OpenWithRuns(const char* pre) {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(
        InByteLevelAlphabet(std::string(1, static_cast<char>(byte))));
  }
  for (const char byte : {'a', ' ', '\n', '1', '!'}) {
    for (int length = 1; length <= 64; length *= 2) {
      const std::string half = InByteLevelAlphabet(std::string(length, byte));
      merges.push_back(half + " " + half);
      tokens.push_back(half + half);
    }
  }
  auto opened =
      OpenHandMadeGguf(GgufBuilder()
                           .Add("tokenizer.ggml.model", "gpt2")
                           .Add("tokenizer.ggml.pre", pre)
                           .AddArray("tokenizer.ggml.tokens", tokens)
                           .AddArray("tokenizer.ggml.token_type",
                                     std::vector<int32_t>(tokens.size(), 1))
                           .AddArray("tokenizer.ggml.merges", merges)
                           .Build());
  EXPECT_TRUE(opened.ok()) << opened.status();
  return *std::move(opened);
}

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

// The seconds that encoding takes; the text must come back.
double SecondsToEncode(const Tokenizer& tokenizer, const std::string& text) {
  const double start = CpuSeconds();
  const auto tokens = tokenizer.Encode(text, {});
  const double seconds = CpuSeconds() - start;
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_TRUE(Decode(tokenizer, *tokens) == text) << "something was lost";
  return seconds;
}

class LongText : public testing::TestWithParam<const char*> {};

TEST_P(LongText, RunsOfOneCharacter) {
  const auto tokenizer = OpenWithRuns(GetParam());
  for (const char byte : {'a', ' ', '\n', '1', '!'}) {
    SCOPED_TRACE(testing::Message() << "the character " << int{byte});
    const double quarter =
        SecondsToEncode(*tokenizer, std::string(kLong / 4, byte));
    const double whole = SecondsToEncode(*tokenizer, std::string(kLong, byte));
    // Four times the length. Quadratic time would be 16 times as much; n log n
    // is 4.5 times, and caches that no longer suffice make it more.
    EXPECT_LT(whole, 11 * quarter + 0.1);
  }
}

// White space before a letter is where expressions look back and forth.
TEST_P(LongText, RunsBeforeSomethingElse) {
  const auto tokenizer = OpenWithRuns(GetParam());
  for (const std::string end : {"x", "\nx", " \n"}) {
    SecondsToEncode(*tokenizer, std::string(kLong / 4, ' ') + end);
    SecondsToEncode(*tokenizer, std::string(kLong / 4, '\n') + end);
    SecondsToEncode(*tokenizer, std::string(kLong / 4, 'a') + end);
  }
}

INSTANTIATE_TEST_SUITE_P(PreTokenizers, LongText,
                         testing::Values("gpt-2", "starcoder", "llama-bpe",
                                         "qwen2", "deepseek-coder", "falcon"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(LongTextOfSentencePiece, RunsOfOneCharacter) {
  const auto tokenizer = OpenHandMadeHf(SentencePieceJson());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (const char byte : {'a', ' ', '\n'}) {
    SecondsToEncode(**tokenizer, std::string(kLong, byte));
  }
}

}  // namespace
}  // namespace folio
