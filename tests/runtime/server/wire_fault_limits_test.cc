// Faults that other serving runtimes have had, as clients would see them: those
// of numbers in requests. Each has the number of its kind.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/client_context.h>

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "folio/v1/generation.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/runtime/server/batch_call.h"
#include "tests/runtime/server/server_fixture.h"
#include "tests/support/scripted_model.h"

namespace folio {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using testing::HasSubstr;

// The field that the details of an error name; empty when they name none.
std::string FieldIn(const google::rpc::Status& status) {
  google::rpc::BadRequest bad_request;
  if (status.details_size() != 1 || !status.details(0).UnpackTo(&bad_request) ||
      bad_request.field_violations_size() != 1) {
    return "";
  }
  EXPECT_EQ(bad_request.field_violations(0).description(), status.message());
  return bad_request.field_violations(0).field();
}

class WireFaultLimitsTest : public ServerFixture {
 protected:
  // How a request ends. When it is refused, by what the details say.
  google::rpc::Status StatusOf(const v1::GenerateRequest& request) {
    const auto stub = v1::Generation::NewStub(NewChannel());
    grpc::ClientContext context;
    const auto reader = stub->Generate(&context, request);
    v1::GenerateResponse response;
    while (reader->Read(&response)) continue;
    const grpc::Status status = reader->Finish();
    google::rpc::Status details;
    EXPECT_TRUE(details.ParseFromString(status.error_details()));
    if (!status.error_details().empty()) {
      EXPECT_EQ(details.message(), status.error_message());
      EXPECT_EQ(details.code(), status.error_code());
    }
    details.set_code(status.error_code());
    details.set_message(status.error_message());
    return details;
  }

  // Expects INVALID_ARGUMENT that is about `field`, and says `part`.
  void ExpectRefused(const v1::GenerateRequest& request,
                     const std::string& field, const std::string& part) {
    const google::rpc::Status status = StatusOf(request);
    EXPECT_EQ(status.code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldIn(status), field) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(part));
  }
};

TEST_F(WireFaultLimitsTest, Fault23_CountsAreExact) {
  StartServer(OptionsFor(/*num_pages=*/512));
  for (const int32_t max_tokens : {0, 1, 2}) {
    for (const int32_t n : {1, 3}) {
      v1::GenerateRequest request = EndlessRequest(max_tokens);
      request.set_n(n);
      const Reply reply = Generate(request);
      ASSERT_TRUE(reply.status.ok()) << reply.status;
      EXPECT_EQ(reply.tokens.size(), n * max_tokens);
      EXPECT_EQ(reply.responses.back().finish_reason(),
                v1::FINISH_REASON_LENGTH);
      EXPECT_EQ(reply.responses.back().usage().prompt_tokens(), 3);
      EXPECT_EQ(reply.responses.back().usage().generated_tokens(),
                n * max_tokens);
    }
  }
}

TEST_F(WireFaultLimitsTest, Fault23_NoTokensMeansPromptLogprobsAndUsageOnly) {
  StartServer(OptionsFor(/*num_pages=*/32));
  v1::GenerateRequest request = RequestOf({1, 2, 3}, 0);
  request.mutable_sampling()->set_prompt_logprobs(true);
  const Reply reply = Generate(request);
  ASSERT_TRUE(reply.status.ok()) << reply.status;
  std::vector<TokenId> scored;
  for (const v1::GenerateResponse& response : reply.responses) {
    for (const v1::ScoredToken& token : response.prompt_logprobs()) {
      scored.push_back(token.token_id());
    }
  }
  EXPECT_EQ(scored, (std::vector<TokenId>{2, 3}));
  EXPECT_TRUE(reply.tokens.empty());
  EXPECT_EQ(reply.text, "");
}

TEST_F(WireFaultLimitsTest, Fault23_NothingOfAPromptIsCut) {
  StartServer(OptionsFor(/*num_pages=*/512));
  std::vector<TokenId> prompt;
  for (int32_t i = 0; i < kContext - 1; ++i) prompt.push_back(i % 251);
  for (int32_t left = 1; left <= 3; ++left) {
    prompt.resize(kContext - left);
    v1::GenerateRequest request = RequestOf(prompt, 10);
    request.set_ignore_eos(true);
    const Reply reply = Generate(request);
    ASSERT_TRUE(reply.status.ok()) << reply.status;
    // The model's tokens follow from all of the prompt's.
    std::vector<TokenId> all = prompt;
    while (all.size() < kContext) all.push_back(ScriptedModel::NextToken(all));
    all.erase(all.begin(), all.begin() + prompt.size());
    EXPECT_EQ(reply.tokens, all);
    EXPECT_EQ(reply.responses.back().finish_reason(), v1::FINISH_REASON_LENGTH);
    EXPECT_EQ(reply.responses.back().usage().prompt_tokens(), prompt.size());
  }
}

TEST_F(WireFaultLimitsTest, Fault24_AnEmptyPromptIsRefusedWithoutBos) {
  StartServer(OptionsFor(/*num_pages=*/32));
  ExpectRefused(RequestOf({}, 3), "input", "BOS");
  v1::GenerateRequest request = RequestOf({1}, 3);
  request.set_text("");
  ExpectRefused(request, "input", "BOS");
  EXPECT_EQ(Generate(RequestOf({1}, 3)).tokens, Expected({1}, 3));
}

std::vector<double> Ints() {
  using Limits = std::numeric_limits<int32_t>;
  return {
      Limits::min(), -101, -100, -1,           0, 1, 2, 3, 20, 21, 32, 33, 100,
      101,           254,  256,  Limits::max()};
}

std::vector<double> Floats() {
  using Limits = std::numeric_limits<float>;
  return {Limits::quiet_NaN(),
          Limits::infinity(),
          -Limits::infinity(),
          Limits::lowest(),
          -101,
          -100,
          -2.5,
          -2,
          -1,
          -Limits::min(),
          0,
          Limits::min(),
          1,
          1.5,
          2,
          2.5,
          100,
          101,
          2147483647,
          Limits::max()};
}

// Which values a number may have, as generation.proto says it. (There are 256
// tokens, 32 samples at most, and max_tokens is 2.)
std::map<std::string, std::pair<double, double>> Ranges() {
  return {
      {"max_tokens", {0, std::numeric_limits<int32_t>::max()}},
      {"min_tokens", {0, 2}},
      {"stop_token_ids", {0, 255}},
      {"n", {1, 32}},
      {"priority", {-100, 100}},
      {"sampling.temperature", {0, std::numeric_limits<float>::max()}},
      {"sampling.logprobs", {0, 20}},
      {"sampling.top_k", {0, std::numeric_limits<int32_t>::max()}},
      {"sampling.top_p", {std::numeric_limits<float>::min(), 1}},
      {"sampling.min_p", {0, 1}},
      {"sampling.allowed_token_ids", {0, 255}},
      {"sampling.repetition_penalty", {0.01f, 100}},
      {"sampling.presence_penalty", {-2, 2}},
      {"sampling.frequency_penalty", {-2, 2}},
  };
}

struct NumberCase {
  v1::GenerateRequest request;
  std::string refused_field;  // Empty: served.
};

NumberCase CaseOf(double value, double least, double most,
                  const std::string& field) {
  v1::GenerateRequest request;
  request.mutable_token_ids()->add_ids(1);
  request.set_max_tokens(2);
  // A NaN is in no range.
  return {request, value >= least && value <= most ? "" : field};
}

// Each number of a request, or of its part whose fields have this prefix, gets
// each value in its turn. New fields fail the test until they have a range.
void AddCases(const std::string& prefix,
              const std::function<Message*(v1::GenerateRequest&)>& part,
              std::vector<NumberCase>& cases) {
  const auto ranges = Ranges();
  v1::GenerateRequest unused;
  const auto& descriptor = *part(unused)->GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    const std::string name = prefix + field.name();
    const bool is_int = field.cpp_type() == FieldDescriptor::CPPTYPE_INT32;
    const bool is_float = field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT;
    if (!is_int && !is_float) continue;
    ASSERT_TRUE(ranges.contains(name)) << name << " has no range here";
    const auto [least, most] = ranges.at(name);
    for (const double value : is_int ? Ints() : Floats()) {
      NumberCase& added = cases.emplace_back(CaseOf(
          value, least, most, name + (field.is_repeated() ? "[0]" : "")));
      Message& message = *part(added.request);
      const auto& reflection = *message.GetReflection();
      if (field.is_repeated()) {
        reflection.AddInt32(&message, &field, static_cast<int32_t>(value));
      } else if (is_int) {
        reflection.SetInt32(&message, &field, static_cast<int32_t>(value));
      } else {
        reflection.SetFloat(&message, &field, static_cast<float>(value));
      }
    }
  }
}

// Those that no field has by itself.
void AddTokensAndBiases(std::vector<NumberCase>& cases) {
  for (const double value : Ints()) {
    const int32_t token = static_cast<int32_t>(value);
    cases.push_back(CaseOf(token, 0, 255, "token_ids[1]"));
    cases.back().request.mutable_token_ids()->add_ids(token);
    cases.push_back(CaseOf(token, 0, 255, "sampling.logit_bias"));
    (*cases.back().request.mutable_sampling()->mutable_logit_bias())[token] = 1;
  }
  for (const double value : Floats()) {
    cases.push_back(CaseOf(value, -100, 100, "sampling.logit_bias[5]"));
    (*cases.back().request.mutable_sampling()->mutable_logit_bias())[5] =
        static_cast<float>(value);
  }
}

std::vector<NumberCase> NumberCases() {
  std::vector<NumberCase> cases;
  AddCases(
      "", [](auto& request) { return &request; }, cases);
  AddCases(
      "sampling.", [](auto& request) { return request.mutable_sampling(); },
      cases);
  AddTokensAndBiases(cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].request.set_request_id(absl::StrCat("case ", i));
  }
  return cases;
}

TEST_F(WireFaultLimitsTest, Fault29_NumbersOutOfRangeAreRefusedByName) {
  StartServer(OptionsFor(/*num_pages=*/512));
  for (const NumberCase& number : NumberCases()) {
    SCOPED_TRACE(number.request.ShortDebugString());
    const google::rpc::Status status = StatusOf(number.request);
    EXPECT_EQ(FieldIn(status), number.refused_field) << status.message();
    EXPECT_EQ(status.code(), number.refused_field.empty()
                                 ? grpc::StatusCode::OK
                                 : grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_EQ(Generate(RequestOf({1}, 3)).tokens, Expected({1}, 3));
  ExpectNoPagesInUse();
}

TEST_F(WireFaultLimitsTest, Fault29_ABatchSaysTheSameOfEach) {
  StartServer(OptionsFor(/*num_pages=*/512));
  const std::vector<NumberCase> cases = NumberCases();
  BatchCall batch(NewChannel());
  for (const NumberCase& number : cases) batch.Submit(number.request);
  const std::map<std::string, BatchReply> replies = batch.ReadToEnd();
  ASSERT_EQ(replies.size(), cases.size());
  for (const NumberCase& number : cases) {
    SCOPED_TRACE(number.request.ShortDebugString());
    const auto& status = replies.at(number.request.request_id()).status;
    EXPECT_EQ(FieldIn(status), number.refused_field) << status.message();
    EXPECT_EQ(status.code(), number.refused_field.empty()
                                 ? grpc::StatusCode::OK
                                 : grpc::StatusCode::INVALID_ARGUMENT);
  }
  ExpectNoPagesInUse();
}

TEST_F(WireFaultLimitsTest, Fault31_WhatWouldTakeAllMemoryIsRefused) {
  EngineOptions options = OptionsFor(/*num_pages=*/512);
  options.caps.max_logprobs = 1000;
  options.caps.max_prompt_tokens = 3000;
  StartServer(options);
  v1::GenerateRequest request = RequestOf({1}, 2);
  request.set_n(1'000'000);
  ExpectRefused(request, "n", "n is 1000000; it must be 1 to 32");

  // Logprobs of a huge prompt: 1000 are the most.
  const auto scored_prompt = [](int32_t size, int32_t logprobs) {
    v1::GenerateRequest scored = RequestOf(std::vector<TokenId>(size, 1), 0);
    scored.mutable_sampling()->set_prompt_logprobs(true);
    if (logprobs > 0) scored.mutable_sampling()->set_logprobs(logprobs);
    return scored;
  };
  EXPECT_EQ(StatusOf(scored_prompt(1000, 0)).code(), grpc::StatusCode::OK);
  ExpectRefused(scored_prompt(1001, 0), "sampling.prompt_logprobs",
                "up to 1001 tokens with 1 logprobs each");
  EXPECT_EQ(StatusOf(scored_prompt(250, 3)).code(), grpc::StatusCode::OK);
  ExpectRefused(scored_prompt(251, 3), "sampling.logprobs",
                "up to 251 tokens with 4 logprobs each");

  // Samples times tokens times logprobs.
  v1::GenerateRequest samples = EndlessRequest(50);
  samples.set_n(4);
  samples.mutable_sampling()->set_logprobs(4);
  EXPECT_EQ(StatusOf(samples).code(), grpc::StatusCode::OK);
  samples.set_max_tokens(51);
  ExpectRefused(samples, "sampling.logprobs",
                "up to 204 tokens with 5 logprobs each are asked for; this "
                "server gives 1000");
  samples.clear_max_tokens();  // As many as fit.
  ExpectRefused(samples, "sampling.logprobs", "up to 16372 tokens");

  ExpectRefused(RequestOf(std::vector<TokenId>(3001, 1), 1), "input",
                "3001 tokens; this server takes 3000 at most");
  ExpectNoPagesInUse();
}

TEST_F(WireFaultLimitsTest, Fault31_AMessageBeyondTheLimitIsRefused) {
  StartServer(OptionsFor(/*num_pages=*/32), {.max_message_bytes = 2000});
  v1::GenerateRequest request = RequestOf({1}, 1);
  request.set_text(std::string(2000, 'a'));
  const google::rpc::Status status = StatusOf(request);
  EXPECT_EQ(status.code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.message(), HasSubstr("2000"));
  EXPECT_EQ(Generate(RequestOf({1}, 3)).tokens, Expected({1}, 3));
}

}  // namespace
}  // namespace folio
