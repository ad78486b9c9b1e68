#include "runtime/engine/text_stream.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/utf8.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Token i is the i-th of these; a special token has no text.
class TableTokenizer final : public Tokenizer {
 public:
  explicit TableTokenizer(std::vector<std::string> texts)
      : texts_(std::move(texts)) {
    info_.vocab_size = static_cast<int32_t>(texts_.size());
  }
  const TokenizerInfo& info() const override { return info_; }
  absl::StatusOr<std::vector<TokenId>> Encode(
      std::string_view /*text*/,
      const EncodeOptions& /*options*/) const override {
    return absl::UnimplementedError("not needed");
  }
  void AppendBytes(TokenId token, std::string& bytes) const override {
    bytes += texts_[token];
  }
  const std::string& TextOf(TokenId token) const { return texts_[token]; }

 private:
  std::vector<std::string> texts_;
  TokenizerInfo info_;
};

// What came out, event by event.
class Client {
 public:
  Client(const Tokenizer* tokenizer, const std::vector<std::string>& stops,
         bool include_stop)
      : stream_(tokenizer,
                stops.empty() ? nullptr
                              : std::make_shared<const StopStrings>(stops),
                include_stop) {}

  // Returns whether it ended the sample.
  bool Sample(TokenId token, bool may_stop = true) {
    const bool stopped = stream_.Append(token, may_stop);
    TokenEvent event;
    event.sampled.tokens = {token};
    event.sampled.logprobs = {-1.0f * static_cast<float>(token)};
    event.sampled.top = {{token, 0.5f}, {token + 1, 0.25f}};
    event.sampled.top_count = 2;
    Complete(event);
    if (stopped) Finish();
    return stopped;
  }

  void Finish() {
    TokenEvent event;
    event.finish_reason = FinishReason::kLength;
    Complete(event);
    stop = event.stop;
  }

  std::string text;
  std::vector<TokenId> tokens;
  std::string stop;

 private:
  void Complete(TokenEvent& event) {
    stream_.Complete(event);
    EXPECT_TRUE(IsValidUtf8(event.text)) << event.text;
    text += event.text;
    // What belongs to a token stays with it.
    const ScoredTokens& sampled = event.sampled;
    ASSERT_EQ(sampled.logprobs.size(), sampled.tokens.size());
    for (size_t i = 0; i < sampled.tokens.size(); ++i) {
      tokens.push_back(sampled.tokens[i]);
      EXPECT_EQ(sampled.logprobs[i], -1.0f * sampled.tokens[i]);
      ASSERT_EQ(sampled.TopOf(i).size(), 2u);
      EXPECT_EQ(sampled.TopOf(i)[1].token, sampled.tokens[i] + 1);
    }
  }

  static bool IsValidUtf8(std::string_view text) {
    while (!text.empty()) {
      const Utf8Front front = FrontOfUtf8(text);
      if (front.kind != Utf8Kind::kCharacter) return false;
      text.remove_prefix(front.length);
    }
    return true;
  }

  TextStream stream_;
};

TEST(TextStreamTest, WithoutStopStringsTokensPassAtOnceAndTextWhenComplete) {
  const TableTokenizer tokenizer({"a", "\xF0\x9F", "\x98\x80", ""});
  Client client(&tokenizer, {}, false);
  EXPECT_FALSE(client.Sample(0));
  EXPECT_FALSE(client.Sample(1));
  EXPECT_EQ(client.text, "a");
  EXPECT_THAT(client.tokens, ElementsAre(0, 1));
  client.Sample(2);
  EXPECT_EQ(client.text, "a\xF0\x9F\x98\x80");
  client.Sample(1);
  client.Finish();
  EXPECT_EQ(client.text, "a\xF0\x9F\x98\x80\xEF\xBF\xBD");
}

TEST(TextStreamTest, OnlyWhatMayBeTheStartOfAStopIsWithheld) {
  const TableTokenizer tokenizer({"a", "b", "x"});
  Client client(&tokenizer, {"ab"}, false);
  EXPECT_FALSE(client.Sample(0));
  EXPECT_EQ(client.text, "");
  EXPECT_THAT(client.tokens, IsEmpty());
  EXPECT_FALSE(client.Sample(0));  // The first "a" is free now.
  EXPECT_EQ(client.text, "a");
  EXPECT_THAT(client.tokens, ElementsAre(0));
  EXPECT_FALSE(client.Sample(2));
  EXPECT_EQ(client.text, "aax");
  EXPECT_THAT(client.tokens, ElementsAre(0, 0, 2));
  EXPECT_FALSE(client.Sample(0));
  EXPECT_TRUE(client.Sample(1));
  EXPECT_EQ(client.text, "aax");
  EXPECT_THAT(client.tokens, ElementsAre(0, 0, 2));
  EXPECT_EQ(client.stop, "ab");
}

TEST(TextStreamTest, AStopOverManyTokensLeavesNoTrace) {
  const TableTokenizer tokenizer({"D", "E", "F", "G", "H", "I", "J", "x"});
  Client client(&tokenizer, {"DEFGHIJ"}, false);
  client.Sample(7);
  for (TokenId token = 0; token < 6; ++token) {
    EXPECT_FALSE(client.Sample(token));
  }
  EXPECT_TRUE(client.Sample(6));
  EXPECT_EQ(client.text, "x");
  EXPECT_THAT(client.tokens, ElementsAre(7));
}

TEST(TextStreamTest, AStopInsideATokenCutsItsText) {
  const TableTokenizer tokenizer({"xaby", "z"});
  for (const bool include_stop : {false, true}) {
    Client client(&tokenizer, {"ab"}, include_stop);
    client.Sample(1);
    EXPECT_TRUE(client.Sample(0));
    EXPECT_EQ(client.text, include_stop ? "zxab" : "zx");
    EXPECT_THAT(client.tokens, ElementsAre(1)) << "the other is not complete";
  }
}

TEST(TextStreamTest, AnIncludedStopComesWithItsTokens) {
  const TableTokenizer tokenizer({"a", "b"});
  Client client(&tokenizer, {"ab"}, true);
  client.Sample(0);
  EXPECT_TRUE(client.Sample(1));
  EXPECT_EQ(client.text, "ab");
  EXPECT_THAT(client.tokens, ElementsAre(0, 1));
}

TEST(TextStreamTest, WhatIsWithheldComesAtTheEnd) {
  const TableTokenizer tokenizer({"a", "b", "\xC3"});
  Client client(&tokenizer, {"abc"}, false);
  client.Sample(0);
  client.Sample(1);
  client.Sample(2);  // Half a character, which can't become one any more.
  EXPECT_EQ(client.text, "");
  client.Finish();
  EXPECT_EQ(client.text, "ab\xEF\xBF\xBD");
  EXPECT_THAT(client.tokens, ElementsAre(0, 1, 2));
  EXPECT_EQ(client.stop, "");
}

TEST(TextStreamTest, AStopDoesNotCountBeforeItMay) {
  const TableTokenizer tokenizer({"a", "b"});
  Client client(&tokenizer, {"ab", "bb"}, false);
  client.Sample(0, /*may_stop=*/false);
  EXPECT_FALSE(client.Sample(1, /*may_stop=*/false));
  EXPECT_EQ(client.text, "a") << "'b' may be the start of 'bb'";
  EXPECT_TRUE(client.Sample(1));
  EXPECT_EQ(client.text, "a");
  EXPECT_EQ(client.stop, "bb");
}

// Against the whole text, cut where it should be.
TEST(TextStreamTest, EqualsTheCutOfTheWholeText) {
  // "é" in halves, and some whole ones.
  const TableTokenizer tokenizer(
      {"a", "b", "ab", "\xC3", "\xA9", "\xC3\xA9", "", "ba"});
  const std::vector<std::string> choices = {"ab", "aab", "\xC3\xA9", "b",
                                            "bab\xC3\xA9"};
  int num_stopped = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<std::string> stops;
    while (stops.empty()) {
      for (const std::string& choice : choices) {
        if (random() % 4 == 0) stops.push_back(choice);
      }
    }
    const bool include_stop = random() % 2 == 0;
    Client client(&tokenizer, stops, include_stop);
    Client free(&tokenizer, {}, false);
    bool stopped = false;
    for (int i = 0; i < 12 && !stopped; ++i) {
      const TokenId token = random() % tokenizer.info().vocab_size;
      free.Sample(token);
      stopped = client.Sample(token);
    }
    if (!stopped) client.Finish();
    free.Finish();
    num_stopped += stopped;

    // The first place where a stop is complete.
    size_t cut = free.text.size();
    bool found = false;
    for (size_t end = 1; end <= free.text.size() && !found; ++end) {
      size_t longest = 0;
      for (const std::string& stop : stops) {
        if (end >= stop.size() &&
            free.text.compare(end - stop.size(), stop.size(), stop) == 0) {
          longest = std::max(longest, stop.size());
        }
      }
      if (longest == 0) continue;
      found = true;
      cut = include_stop ? end : end - longest;
    }
    EXPECT_EQ(stopped, found);
    EXPECT_EQ(client.text, free.text.substr(0, cut));
    // Tokens are a prefix of all, whose text is not longer than what came.
    ASSERT_LE(client.tokens.size(), free.tokens.size());
    EXPECT_TRUE(std::equal(client.tokens.begin(), client.tokens.end(),
                           free.tokens.begin()));
    if (!stopped) {
      EXPECT_EQ(client.tokens, free.tokens);
    }
  }
  EXPECT_GT(num_stopped, 1000);
  EXPECT_LT(num_stopped, 2900);
}

}  // namespace
}  // namespace folio
