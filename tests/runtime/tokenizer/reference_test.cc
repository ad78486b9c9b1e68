// Real vocabularies: the tokens are those of the reference tokenizers.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/tokenizer/detokenizer.h"
#include "runtime/tokenizer/open_tokenizer.h"
#include "runtime/weights/json_file.h"
#include "tests/runtime/tokenizer/hand_made.h"
#include "tests/support/sanitized.h"

namespace folio {
namespace {

using nlohmann::json;

constexpr char kFolder[] = FOLIO_SHARED_DIR "/reference/tokenizers/";

// One for each vocabulary.
class ReferenceTokenizer : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string path = std::string(kFolder) + GetParam() + ".gguf";
    if (!std::filesystem::exists(path)) {
      GTEST_SKIP() << path << " is not there";
    }
    const auto file = GgufFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    auto tokenizer = OpenGgufTokenizer(**file);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
  }

  std::vector<TokenId> Encoded(const std::string& text) const {
    const auto tokens = tokenizer_->Encode(text, {});
    EXPECT_TRUE(tokens.ok()) << tokens.status();
    return *tokens;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(ReferenceTokenizer, EveryTextHasItsTokensAndComesBack) {
  const auto cases = ReadJsonFile(std::string(kFolder) + GetParam() + ".json");
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_EQ(cases->size(), 47u);
  for (const json& c : *cases) {
    const auto text = c.at("text").get<std::string>();
    const std::vector<TokenId> tokens = Encoded(text);
    EXPECT_EQ(tokens, c.at("ids").get<std::vector<TokenId>>()) << text;
    EXPECT_EQ(Decode(*tokenizer_, tokens), text);
  }
}

// A vocabulary may lack the token of a byte that only rare characters have, and
// then a text with such a byte is refused, and no other is.
TEST_P(ReferenceTokenizer, RandomTextComesBack) {
  std::set<char> bytes_with_token;
  for (TokenId id = 0; id < tokenizer_->info().vocab_size; ++id) {
    std::string bytes;
    tokenizer_->AppendBytes(id, bytes);
    if (bytes.size() == 1) bytes_with_token.insert(bytes[0]);
  }
  int num_encoded = 0;
  const int num_texts = kSanitized ? 200 : 2000;
  for (int seed = 0; seed < num_texts; ++seed) {
    const std::string text = RandomText(seed, 100);
    const bool has_tokens = std::ranges::all_of(
        text, [&](char byte) { return bytes_with_token.contains(byte); });
    const auto tokens = tokenizer_->Encode(text, {});
    ASSERT_EQ(tokens.ok(), has_tokens)
        << "seed " << seed << ": " << tokens.status();
    if (!tokens.ok()) continue;
    ASSERT_EQ(Decode(*tokenizer_, *tokens), text) << "seed " << seed;
    ++num_encoded;
  }
  EXPECT_GT(num_encoded, num_texts / 2);
}

// Every token's bytes alone, then all as one sequence: one by one and at once.
TEST_P(ReferenceTokenizer, TokensDecodeOneByOneAsAtOnce) {
  Detokenizer detokenizer(tokenizer_.get(), TextStart::kContinuation);
  std::string one_by_one;
  std::vector<TokenId> all;
  for (TokenId id = 0; id < tokenizer_->info().vocab_size; ++id) {
    all.push_back(id);
    detokenizer.Append(id, one_by_one);
  }
  detokenizer.Finish(one_by_one);
  std::string at_once = Decode(*tokenizer_, all);
  if (tokenizer_->adds_leading_space() && one_by_one.starts_with(' ')) {
    one_by_one.erase(0, 1);
  }
  EXPECT_EQ(one_by_one, at_once);
}

TEST_P(ReferenceTokenizer, ThreadsGetTheSameTokens) {
  std::string text;
  for (int seed = 0; seed < 200; ++seed) {
    const std::string part = RandomText(seed, 50);
    if (tokenizer_->Encode(part, {}).ok()) text += part;
  }
  const std::vector<TokenId> expected = Encoded(text);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(Encoded(text), expected); });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, ReferenceTokenizer,
                         testing::Values("gpt-2", "llama-spm", "starcoder"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace folio
