// What a client is told about a request that can't be served.

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "runtime/server/request_conversion.h"
#include "tests/runtime/server/server_fixture.h"
#include "tests/support/scripted_model.h"

namespace folio {
namespace {

using testing::HasSubstr;

class RequestErrorsTest : public ServerFixture {};

struct BadRequest {
  std::function<void(v1::GenerateRequest&)> spoil;
  absl::StatusCode code;
  // What the message says: the field, what was found, what is allowed.
  std::vector<std::string> says;
};

// Shorthands for the table.
std::function<void(v1::GenerateRequest&)> Prompt(std::vector<TokenId> prompt) {
  return [prompt](v1::GenerateRequest& request) {
    request.mutable_token_ids()->mutable_ids()->Assign(prompt.begin(),
                                                       prompt.end());
  };
}
std::function<void(v1::GenerateRequest&)> Temperature(float temperature) {
  return [temperature](v1::GenerateRequest& request) {
    request.mutable_sampling()->set_temperature(temperature);
  };
}
std::function<void(v1::GenerateRequest&)> Logprobs(int32_t logprobs) {
  return [logprobs](v1::GenerateRequest& request) {
    request.mutable_sampling()->set_logprobs(logprobs);
  };
}
std::function<void(v1::GenerateRequest&)> StopToken(TokenId token) {
  return [token](v1::GenerateRequest& request) {
    request.add_stop_token_ids(token);
  };
}
std::function<void(v1::GenerateRequest&)> Samples(int32_t n) {
  return [n](v1::GenerateRequest& request) { request.set_n(n); };
}
std::function<void(v1::GenerateRequest&)> Priority(int32_t priority) {
  return [priority](v1::GenerateRequest& request) {
    request.set_priority(priority);
  };
}
std::function<void(v1::GenerateRequest&)> Text(const std::string& text) {
  return [text](v1::GenerateRequest& request) { request.set_text(text); };
}

std::vector<BadRequest> BadRequests() {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr TokenId kMost = std::numeric_limits<TokenId>::max();
  return {
      {[](auto& request) { request.clear_input(); },
       kInvalid,
       {"input", "text", "token_ids"}},
      {Prompt({}), kInvalid, {"prompt is empty", "BOS"}},
      {Text(""), kInvalid, {"prompt is empty", "BOS"}},
      {Text("a\x07"), kInvalid, {"text", "0x07", "offset 1"}},
      {Prompt({1, -1}), kInvalid, {"token_ids[1] is -1", "0 to 255"}},
      {Prompt({256}), kInvalid, {"token_ids[0] is 256", "0 to 255"}},
      {Prompt({kMost}), kInvalid, {"token_ids[0] is 2147483647", "0 to 255"}},
      {StopToken(256), kInvalid, {"stop_token_ids[0] is 256", "0 to 255"}},
      {StopToken(-1), kInvalid, {"stop_token_ids[0] is -1", "0 to 255"}},
      {Temperature(-0.5f),
       kInvalid,
       {"sampling.temperature is -0.5", "at least 0"}},
      {Temperature(std::nanf("")),
       kInvalid,
       {"sampling.temperature is nan", "finite"}},
      {Temperature(std::numeric_limits<float>::infinity()),
       kInvalid,
       {"sampling.temperature is inf", "finite"}},
      {[](auto& request) { request.mutable_sampling()->set_top_k(-1); },
       kInvalid,
       {"sampling.top_k is -1", "at least 0"}},
      {[](auto& request) { request.mutable_sampling()->set_top_p(0); },
       kInvalid,
       {"sampling.top_p is 0", "above 0 and at most 1"}},
      {Logprobs(21), kInvalid, {"sampling.logprobs is 21", "0 to 20"}},
      {Logprobs(-1), kInvalid, {"sampling.logprobs is -1", "0 to 20"}},
      {[](auto& request) { request.set_max_tokens(-1); },
       kInvalid,
       {"max_tokens is -1", "at least 0"}},
      {Samples(0), kInvalid, {"n is 0;", "1 to 32"}},
      {Samples(-1), kInvalid, {"n is -1;", "1 to 32"}},
      {Samples(33), kInvalid, {"n is 33;", "1 to 32"}},
      {Priority(-101), kInvalid, {"priority is -101;", "-100 to 100"}},
      {Priority(101), kInvalid, {"priority is 101;", "-100 to 100"}},
      {[](auto& request) { request.set_tenant(std::string(257, 'x')); },
       kInvalid,
       {"tenant has 257 bytes", "256"}},
      {[](auto& request) { request.set_model("gpt"); },
       absl::StatusCode::kNotFound,
       {"model is 'gpt'", "'scripted'"}},
      // More than the metadata of a call may take.
      {[](auto& request) { request.set_model(std::string(100000, 'x')); },
       absl::StatusCode::kNotFound,
       {"model is '" + std::string(100, 'x') + "...'", "'scripted'"}},
      {[](auto& request) { request.set_request_id(std::string(257, 'x')); },
       kInvalid,
       {"request_id has 257 bytes", "256"}},
  };
}

TEST_F(RequestErrorsTest, NameTheFieldWhatWasFoundAndWhatIsAllowed) {
  StartServer(OptionsFor(/*num_pages=*/32));
  for (const BadRequest& bad : BadRequests()) {
    v1::GenerateRequest request = RequestOf({1}, 2);
    bad.spoil(request);
    const Reply reply = Generate(request);
    const std::string message(reply.status.message());
    EXPECT_EQ(reply.status.code(), bad.code) << request.ShortDebugString();
    EXPECT_TRUE(reply.responses.empty());
    for (const std::string& part : bad.says) {
      EXPECT_THAT(message, HasSubstr(part));
    }
  }
  // None of them did any harm.
  EXPECT_EQ(Generate(RequestOf({1}, 2)).tokens, Expected({1}, 2));
  ExpectNoPagesInUse();
}

TEST_F(RequestErrorsTest, LimitsAreExact) {
  StartServer(OptionsFor(/*num_pages=*/32));
  v1::GenerateRequest request = RequestOf({1}, 2);
  request.set_request_id(std::string(kMaxRequestIdBytes, 'x'));
  request.set_model("scripted");
  request.mutable_sampling()->set_logprobs(20);
  request.add_stop_token_ids(255);
  request.set_tenant(std::string(256, 'x'));
  request.set_priority(-100);
  request.set_n(32);
  EXPECT_TRUE(Generate(request).status.ok());
  request.set_priority(100);
  EXPECT_TRUE(Generate(request).status.ok());
}

TEST_F(RequestErrorsTest, APromptMustFitIntoTheContext) {
  StartServer(OptionsFor(/*num_pages=*/512));  // 8192 tokens.
  const Reply fits =
      Generate(RequestOf(std::vector<TokenId>(kContext - 1, 1), 10));
  EXPECT_TRUE(fits.status.ok()) << fits.status;
  EXPECT_EQ(fits.tokens.size(), 1);
  EXPECT_EQ(fits.responses.back().finish_reason(), v1::FINISH_REASON_LENGTH);
  const Reply refused =
      Generate(RequestOf(std::vector<TokenId>(kContext, 1), 10));
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status.message()),
              testing::AllOf(HasSubstr("prompt has 4096 tokens"),
                             HasSubstr("context of 4096 tokens")));
}

TEST_F(RequestErrorsTest, APromptMustFitIntoThePool) {
  StartServer(OptionsFor(/*num_pages=*/50));  // 800 tokens.
  const Reply refused = Generate(RequestOf(std::vector<TokenId>(1002, 1), 10));
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status.message()),
              testing::AllOf(HasSubstr("prompt has 1002 tokens"),
                             HasSubstr("800 tokens"), HasSubstr("--kv-pool")));
  EXPECT_EQ(Generate(RequestOf({1, 2, 3, 4, 5}, 5)).tokens,
            Expected({1, 2, 3, 4, 5}, 5));
}

}  // namespace
}  // namespace folio
