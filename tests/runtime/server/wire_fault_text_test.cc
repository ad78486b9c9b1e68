// Faults that other serving runtimes have had, as clients would see them: those
// of text and its limits. Each has the number of its kind.

#include <grpcpp/client_context.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "folio/v1/generation.grpc.pb.h"
#include "runtime/base/utf8.h"
#include "tests/runtime/server/batch_call.h"
#include "tests/runtime/server/played_model.h"
#include "tests/runtime/server/server_fixture.h"

namespace folio {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WireFaultTextTest : public ServerFixture {
 protected:
  std::unique_ptr<Model> MakeModel(const ModelLimits& limits) const override {
    return std::make_unique<PlayedModel>(&text_, bos_token_, kContext, limits);
  }

  void Start() { StartServer(OptionsFor(/*num_pages=*/512)); }

  // From now on, the model says `text`, a byte in each step.
  void Play(std::string_view text) {
    text_ = absl::StrCat("?", std::string(text));
  }

  static v1::GenerateRequest Ask(int32_t max_tokens) {
    return RequestOf({'?'}, max_tokens);
  }

  std::string text_;
  std::optional<TokenId> bos_token_;
};

std::string BytesOf(const std::vector<TokenId>& tokens) {
  return {tokens.begin(), tokens.end()};
}

TEST_F(WireFaultTextTest, Fault19_CharactersThatSpanTokensAreHeldBack) {
  const std::string emoji = "\xF0\x9F\x98\x80";
  Start();
  Play(emoji);
  for (const char* stop : {"", "x"}) {
    for (int32_t max_tokens : {1, 2, 3, 4}) {
      v1::GenerateRequest request = Ask(max_tokens);
      if (*stop != '\0') request.add_stop(stop);
      const Reply reply = Generate(request);
      ASSERT_TRUE(reply.status.ok()) << reply.status;
      EXPECT_EQ(BytesOf(reply.tokens), emoji.substr(0, max_tokens));
      EXPECT_EQ(reply.text, max_tokens == 4 ? emoji : "\uFFFD");
      for (const v1::GenerateResponse& response : reply.responses) {
        EXPECT_TRUE(IsValidUtf8(response.text())) << response.text();
      }
    }
  }
}

TEST_F(WireFaultTextTest, Fault19_BytesThatAreNoCharacterAreReplaced) {
  Start();
  Play(
      "a\xF0\x9F"
      "b\x80"
      "c\xC3");
  const Reply reply = Generate(Ask(7));
  ASSERT_TRUE(reply.status.ok()) << reply.status;
  EXPECT_EQ(reply.text, "a\uFFFDb\uFFFDc\uFFFD");
  EXPECT_EQ(reply.tokens.size(), 7);
}

struct StopCase {
  std::string says;  // The model, a byte a token.
  std::vector<std::string> stops;
  int32_t max_tokens;
  std::string text;   // What comes of it; the tokens are its bytes.
  std::string found;  // Which stop string; empty: none, and it goes on.
  int32_t generated;  // Tokens.
  bool include_stop = false;
  int32_t min_tokens = 0;
};

std::vector<StopCase> StopCases() {
  return {
      {"xxABCDEFGHIJyy", {"DEFGHIJ"}, 14, "xxABC", "DEFGHIJ", 12},
      {"xxABCDEFGHIJyy", {"DEFGHIJ"}, 14, "xxABCDEFGHIJ", "DEFGHIJ", 12, true},
      {"aab", {"ab"}, 9, "a", "ab", 3},
      {"abababc", {"ababc"}, 9, "ab", "ababc", 7},
      // In the very last token, which would have been the end in any case.
      {"abcd", {"cd"}, 4, "ab", "cd", 4},
      {"abcd", {"cd"}, 4, "abcd", "cd", 4, true},
      // Starts that fail, or have no time to end.
      {"DEFGHIK", {"DEFGHIJ"}, 7, "DEFGHIK", "", 7},
      {"abDEF", {"DEFGHIJ"}, 5, "abDEF", "", 5},
      // Of several, the first to be complete; of two at once, the longest.
      {"abcde", {"e", "bc"}, 9, "a", "bc", 3},
      {"abcde", {"cd", "bcd", "d"}, 9, "a", "bcd", 4},
      {"ab", {"ab"}, 9, "", "ab", 2},
      // Characters of several tokens.
      {"a\u00e9\U0001F600b",
       {"\u00e9\U0001F600"},
       9,
       "a",
       "\u00e9\U0001F600",
       7},
      {"a\u00e9\U0001F601",
       {"\u00e9\U0001F600"},
       7,
       "a\u00e9\U0001F601",
       "",
       7},
      {"\U0001F600b", {"\U0001F600"}, 9, "\U0001F600", "\U0001F600", 4, true},
      // Too early to count.
      {"ababab", {"ab"}, 9, "", "ab", 2, false, 2},
      {"ababab", {"ab"}, 9, "ab", "ab", 4, false, 3},
  };
}

TEST_F(WireFaultTextTest, Fault20_StopStringsEndTheTextWhereverTheyFall) {
  Start();
  for (const StopCase& expected : StopCases()) {
    SCOPED_TRACE(expected.says);
    Play(expected.says);
    v1::GenerateRequest request = Ask(expected.max_tokens);
    request.mutable_stop()->Assign(expected.stops.begin(),
                                   expected.stops.end());
    request.set_include_stop(expected.include_stop);
    request.set_min_tokens(expected.min_tokens);
    const Reply reply = Generate(request);
    ASSERT_TRUE(reply.status.ok()) << reply.status;
    EXPECT_EQ(reply.text, expected.text);
    const v1::GenerateResponse& last = reply.responses.back();
    EXPECT_EQ(last.finish_reason(), expected.found.empty()
                                        ? v1::FINISH_REASON_LENGTH
                                        : v1::FINISH_REASON_STOP);
    EXPECT_EQ(last.stop(), expected.found);
    EXPECT_EQ(last.usage().generated_tokens(), expected.generated);
    // Tokens come with the text that they complete.
    Reply so_far;
    for (const v1::GenerateResponse& response : reply.responses) {
      so_far.Add(response);
      EXPECT_EQ(BytesOf(so_far.tokens), so_far.text);
    }
  }
}

TEST_F(WireFaultTextTest, Fault20_OnlyWhatMayStartAStopStringIsWithheld) {
  Start();
  Play("xDxDEFyz");
  gate_.Close();
  v1::GenerateRequest request = Ask(8);
  request.add_stop("DEFG");
  const auto stub = v1::Generation::NewStub(NewChannel());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto reader = stub->Generate(&context, request);
  ASSERT_TRUE(gate_.WaitForArrivals(1, kPatience));
  // After how many steps what comes is there, before the next one is made.
  std::vector<std::string> texts;
  for (const int steps : {1, 2, 4}) {
    for (int i = 0; i < steps; ++i) {
      const int64_t next = gate_.num_arrived() + 1;
      gate_.LetOneThrough();
      ASSERT_TRUE(gate_.WaitForArrivals(next, kPatience));
    }
    v1::GenerateResponse response;
    ASSERT_TRUE(reader->Read(&response));
    texts.push_back(response.text());
  }
  EXPECT_THAT(texts, ElementsAre("x", "Dx", "DEFy"));
  context.TryCancel();
}

TEST_F(WireFaultTextTest, Fault24_AnEmptyPromptStartsFromBos) {
  bos_token_ = '?';
  Start();
  Play("abc");
  v1::GenerateRequest text = Ask(3);
  text.set_text("");
  v1::GenerateRequest ids = Ask(3);
  ids.mutable_token_ids()->clear_ids();
  for (const v1::GenerateRequest& request : {text, ids}) {
    const Reply reply = Generate(request);
    ASSERT_TRUE(reply.status.ok()) << reply.status;
    EXPECT_EQ(reply.text, "abc");
    EXPECT_EQ(reply.responses.back().usage().prompt_tokens(), 1);
  }
}

// Libraries of some languages send it all the same; that of C++ logs an error.
class Fault33Test : public WireFaultTextTest {
 protected:
  static v1::GenerateRequest Broken(const char* text) {
    v1::GenerateRequest request = Ask(3);
    request.set_request_id("broken");
    request.set_text(text);
    return request;
  }

  const std::vector<const char*> not_utf8_ = {"a\xFF", "\xC3", "\xED\xA0\x80"};
};

TEST_F(Fault33Test, Fault33_TextThatIsNotUtf8IsRefused) {
  Start();
  Play("abc");
  const auto stub = v1::Generation::NewStub(NewChannel());
  for (const char* text : not_utf8_) {
    const Reply reply = Generate(Broken(text));
    EXPECT_EQ(reply.status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(reply.status.message()), HasSubstr("UTF-8"));
    v1::TokenizeRequest request;
    request.set_text(text);
    grpc::ClientContext context;
    v1::TokenizeResponse response;
    const grpc::Status status = stub->Tokenize(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("UTF-8"));
  }
  EXPECT_EQ(Generate(Ask(3)).text, "abc");
}

TEST_F(Fault33Test, Fault33_ABatchGoesOnBehindTextThatIsNotUtf8) {
  Start();
  Play("abc");
  for (const char* text : not_utf8_) {
    BatchCall batch(NewChannel());
    batch.Submit(Broken(text));
    v1::GenerateRequest good = Ask(3);
    good.set_request_id("good");
    batch.Submit(good);
    const std::map<std::string, BatchReply> replies = batch.ReadToEnd();
    ASSERT_EQ(replies.size(), 2);
    EXPECT_EQ(replies.at("good").reply.text, "abc");
    EXPECT_EQ(replies.at("good").status.code(), grpc::StatusCode::OK);
    // Nothing in the message can be relied on, its request_id neither.
    const google::rpc::Status& refused = replies.at("").status;
    EXPECT_EQ(refused.code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(refused.message(), HasSubstr("UTF-8"));
  }
}

}  // namespace
}  // namespace folio
