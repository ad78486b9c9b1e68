// The messages are made by hand after what the servers' sources say: llama.cpp
// (tools/server) and vLLM (entrypoints/openai).

#include "bench/load/openai_protocol.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

TEST(CompletionBodyTest, HasWhatEveryServerNeeds) {
  const TargetRequest request = {
      .name = "a", .prompt = std::vector<TokenId>{5, 0, 7}, .max_tokens = 9};
  EXPECT_EQ(Json::parse(CompletionBody(request, "")), Json::parse(R"json({
    "prompt": [5, 0, 7], "max_tokens": 9, "temperature": 0, "stream": true,
    "stream_options": {"include_usage": true}, "ignore_eos": true})json"));
}

TEST(CompletionBodyTest, HasTheRestWhereItIsSet) {
  const TargetRequest request = {.name = "a",
                                 .prompt = std::string("\"Hi\"\n"),
                                 .n = 2,
                                 .tenant = "t",
                                 .priority = -3};
  EXPECT_EQ(Json::parse(CompletionBody(request, "llama")), Json::parse(R"json({
    "model": "llama", "prompt": "\"Hi\"\n", "max_tokens": 1, "temperature": 0,
    "stream": true, "stream_options": {"include_usage": true},
    "ignore_eos": true, "n": 2, "user": "t", "priority": -3})json"));
}

TEST(CompletionBodyTest, AnyBytesGiveJson) {
  const TargetRequest request = {.prompt = std::string("a\xFF")};
  EXPECT_EQ(Json::parse(CompletionBody(request, "")).at("prompt"),
            "a\xEF\xBF\xBD");
}

CompletionChunk Parsed(std::string_view data) {
  absl::StatusOr<CompletionChunk> chunk = ParseCompletionChunk(data);
  EXPECT_TRUE(chunk.ok()) << chunk.status();
  return chunk.ok() ? *std::move(chunk) : CompletionChunk();
}

TEST(CompletionChunkTest, ATokenWithText) {
  const CompletionChunk chunk =
      Parsed(R"({"id":"c","choices":[{"index":1,"text":" a","logprobs":null,)"
             R"("finish_reason":null}],"usage":null})");
  ASSERT_THAT(chunk.choices, SizeIs(1));
  EXPECT_EQ(chunk.choices[0].sample, 1);
  EXPECT_EQ(chunk.choices[0].text, " a");
  EXPECT_FALSE(chunk.choices[0].is_last);
  EXPECT_TRUE(chunk.choices[0].HasToken());
  EXPECT_FALSE(chunk.usage.has_value());
}

TEST(CompletionChunkTest, EmptyTextIsATokenUntilTheEnd) {
  // vLLM, when a character's bytes are not all there.
  EXPECT_TRUE(Parsed(R"({"choices":[{"index":0,"text":""}]})")
                  .choices.at(0)
                  .HasToken());
  // vLLM's last token.
  EXPECT_TRUE(
      Parsed(R"({"choices":[{"index":0,"text":"x","finish_reason":"length"}]})")
          .choices.at(0)
          .HasToken());
  // The end of llama.cpp's, after its last token.
  const CompletionChunk end = Parsed(
      R"({"choices":[{"text":"","index":0,"finish_reason":"length"}],)"
      R"("usage":{"completion_tokens":3,"prompt_tokens":4,"total_tokens":7}})");
  EXPECT_FALSE(end.choices.at(0).HasToken());
  EXPECT_TRUE(end.choices.at(0).is_last);
  ASSERT_TRUE(end.usage.has_value());
  EXPECT_EQ(end.usage->completion_tokens, 3);
  EXPECT_EQ(end.usage->prompt_tokens, 4);
}

TEST(CompletionChunkTest, WhatIsNotAChunkIsInternal) {
  for (const char* const data :
       {"", "oops", "[1]", "{\"choices\": [", "\"\xFF"}) {
    const absl::Status status = ParseCompletionChunk(data).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << data;
    EXPECT_THAT(status.message(), HasSubstr("no JSON object"));
  }
}

TEST(CompletionChunkTest, StrangeButHarmless) {
  EXPECT_THAT(Parsed("{}").choices, IsEmpty());
  EXPECT_THAT(Parsed(R"({"choices": null, "error": null})").choices, IsEmpty());
  EXPECT_THAT(Parsed(R"({"choices": [3, {"text": 4, "index": -1}]})").choices,
              SizeIs(2));
  EXPECT_FALSE(Parsed(R"({"usage": 3})").usage.has_value());
  EXPECT_EQ(
      Parsed(R"({"usage": {"prompt_tokens": 1e99}})").usage->prompt_tokens,
      std::nullopt);
}

TEST(CompletionChunkTest, ErrorsInTheStream) {
  const auto status = [](std::string_view data) {
    return ParseCompletionChunk(data).status();
  };
  // llama.cpp, vLLM now, vLLM before, and one that tells no number.
  EXPECT_EQ(status(R"({"error":{"code":503,"message":"Loading model",)"
                   R"("type":"unavailable_error"}})"),
            absl::UnavailableError(
                "the server broke off with error 503: Loading model"));
  EXPECT_EQ(status(R"({"error":{"message":"too long","code":400}})"),
            absl::InvalidArgumentError(
                "the server broke off with error 400: too long"));
  EXPECT_EQ(
      status(R"({"object":"error","message":"bad","code":400})"),
      absl::InvalidArgumentError("the server broke off with error 400: bad"));
  EXPECT_EQ(status(R"({"error":{"message":"m","code":"model_not_found"}})"),
            absl::InternalError("the server broke off with error 500: m"));
  EXPECT_EQ(status(R"({"error":"boom"})"),
            absl::InternalError("the server broke off with error 500: boom"));
}

TEST(StatusOfHttpTest, Codes) {
  using enum absl::StatusCode;
  const std::pair<int, absl::StatusCode> expected[] = {
      {400, kInvalidArgument},   {401, kUnauthenticated},
      {403, kPermissionDenied},  {404, kNotFound},
      {405, kInvalidArgument},   {422, kInvalidArgument},
      {429, kResourceExhausted}, {500, kInternal},
      {501, kInternal},          {503, kUnavailable},
      {301, kInternal}};
  for (const auto& [http, code] : expected) {
    EXPECT_EQ(StatusOfHttp(http, "").code(), code) << http;
  }
}

TEST(StatusOfHttpTest, Messages) {
  const auto message = [](std::string_view body) {
    return std::string(StatusOfHttp(400, body).message());
  };
  EXPECT_EQ(message(""), "HTTP 400");
  EXPECT_EQ(message(R"({"error":{"code":400,"message":"no n"}})"),
            "HTTP 400: no n");
  EXPECT_EQ(message(R"({"error":"Unauthorized"})"), "HTTP 400: Unauthorized");
  EXPECT_EQ(message(R"({"object":"error","message":"m"})"), "HTTP 400: m");
  EXPECT_EQ(message(R"({"detail":"Not Found"})"), "HTTP 400: Not Found");
  EXPECT_EQ(message(R"({"error":{"type":"t"}})"), R"(HTTP 400: {"type":"t"})");
  EXPECT_EQ(message("<b>\x01\xFF"), "HTTP 400: <b>\\x01\\xff");
  EXPECT_EQ(message(std::string(1000, 'x')),
            "HTTP 400: " + std::string(300, 'x') + "...");
}

TEST(ParseModelsTest, LlamaCpp) {
  const auto info = ParseModels(
      R"({"models":[],"object":"list","data":[{"id":"tiny.gguf",)"
      R"("object":"model","owned_by":"llamacpp","meta":{"vocab_type":2,)"
      R"("n_vocab":49152,"n_ctx_train":2048,"n_embd":576}}]})",
      "", "llama.cpp");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->server, "llama.cpp");
  EXPECT_EQ(info->model, "tiny.gguf");
  EXPECT_EQ(info->vocab_size, 49152);
  EXPECT_EQ(info->context_length, 2048);
}

TEST(ParseModelsTest, VllmAndTheChoiceOfAModel) {
  const std::string body =
      R"({"object":"list","data":[{"id":"a","owned_by":"vllm",)"
      R"("max_model_len":4096},{"id":"b","max_model_len":8192}]})";
  const auto first = ParseModels(body, "", "uvicorn");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->server, "vLLM");
  EXPECT_EQ(first->model, "a");
  EXPECT_EQ(first->vocab_size, std::nullopt);
  EXPECT_EQ(first->context_length, 4096);
  const auto second = ParseModels(body, "b", "uvicorn");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->server, "uvicorn");
  EXPECT_EQ(second->model, "b");
  EXPECT_EQ(second->context_length, 8192);
  // Perhaps an alias; the server must know.
  const auto other = ParseModels(body, "c", "uvicorn");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->model, "c");
  EXPECT_EQ(other->context_length, std::nullopt);
}

TEST(ParseModelsTest, WhatIsNoList) {
  for (const char* const body : {"", "<html>", "[]", "{}", R"({"data": 1})"}) {
    EXPECT_EQ(ParseModels(body, "", "").status().code(),
              absl::StatusCode::kInvalidArgument)
        << body;
  }
  const auto empty = ParseModels(R"({"data": [{"id": 3}]})", "", "s");
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->model, "");
}

CompletionChunk::Choice Of(int32_t sample) { return {.sample = sample}; }

TEST(UsageCountTest, OneOfTheWholeRequest) {
  UsageCount count;
  count.Add({.choices = {Of(0)}});
  EXPECT_EQ(count.completion_tokens(), std::nullopt);
  EXPECT_EQ(count.prompt_tokens(), std::nullopt);
  count.Add({.usage = {{.prompt_tokens = 4, .completion_tokens = 6}}});
  EXPECT_EQ(count.completion_tokens(), 6);
  EXPECT_EQ(count.prompt_tokens(), 4);
}

TEST(UsageCountTest, OneOfEachSample) {
  UsageCount count;
  count.Add({.choices = {Of(1)},
             .usage = {{.prompt_tokens = 4, .completion_tokens = 2}}});
  count.Add({.choices = {Of(0)},
             .usage = {{.prompt_tokens = 4, .completion_tokens = 5}}});
  // A later one of the same sample holds for all of it so far.
  count.Add({.choices = {Of(1)},
             .usage = {{.prompt_tokens = 4, .completion_tokens = 3}}});
  EXPECT_EQ(count.completion_tokens(), 8);
  EXPECT_EQ(count.prompt_tokens(), 4);
}

}  // namespace
}  // namespace folio
