// Against a server that this test plays itself, message by message, so that
// nothing here depends on time but what is about time.

#include "bench/load/openai_target.h"

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/bench/load/scripted_http_server.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::string_view kChunkedHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    "Transfer-Encoding: chunked\r\n\r\n";
constexpr std::string_view kClosingHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    "Connection: close\r\n\r\n";
constexpr std::string_view kDone = "data: [DONE]\n\n";

std::string Token(std::string_view text, int sample = 0) {
  return absl::StrCat(R"(data: {"choices":[{"index":)", sample, R"(,"text":")",
                      std::string(text), R"(","finish_reason":null}]})",
                      "\n\n");
}

std::string Last(int sample = 0) {
  return absl::StrCat(R"(data: {"choices":[{"index":)", sample,
                      R"(,"text":"","finish_reason":"length"}]})", "\n\n");
}

std::string Usage(int prompt, int completion) {
  return absl::StrCat(R"(data: {"choices":[],"usage":{"prompt_tokens":)",
                      prompt, R"(,"completion_tokens":)", completion, "}}\n\n");
}

std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

// An answer of known length.
std::string Answer(std::string_view status, std::string_view body) {
  return absl::StrCat("HTTP/1.1 ", std::string(status),
                      "\r\nContent-Type: application/json\r\nServer: "
                      "test\r\nContent-Length: ",
                      body.size(), "\r\n\r\n", std::string(body));
}

// Keeps what it is told.
class Recorder final : public TargetListener {
 public:
  ~Recorder() override { EXPECT_LE(num_ends_, 1); }

  void OnOutput(const Output& output) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(num_ends_, 0);
    EXPECT_THAT(output.tokens, IsEmpty());
    num_tokens_ += output.num_tokens;
    texts_.push_back(
        absl::StrCat(output.sample, ":", std::string(output.text)));
    threads_.insert(std::this_thread::get_id());
    changed_.notify_all();
  }

  void OnEnd(TargetEnd end) override {
    const std::lock_guard lock(mutex_);
    ++num_ends_;
    end_ = std::move(end);
    threads_.insert(std::this_thread::get_id());
    changed_.notify_all();
  }

  // "SAMPLE:TEXT" of each output, once there are so many or it has ended.
  std::vector<std::string> AwaitOutputs(size_t count) {
    std::unique_lock lock(mutex_);
    Await(lock, [&] { return texts_.size() >= count || num_ends_ > 0; });
    return texts_;
  }

  TargetEnd AwaitEnd() {
    std::unique_lock lock(mutex_);
    Await(lock, [&] { return num_ends_ > 0; });
    return end_;
  }

  std::vector<std::string> texts() { return AwaitOutputs(0); }
  int num_tokens() {
    const std::lock_guard lock(mutex_);
    return num_tokens_;
  }
  std::set<std::thread::id> threads() {
    const std::lock_guard lock(mutex_);
    return threads_;
  }

 private:
  // A test that waits in vain must not hang.
  void Await(std::unique_lock<std::mutex>& lock, const auto& condition) {
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1), condition));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;
  int num_tokens_ = 0;
  TargetEnd end_;
  int num_ends_ = 0;
  std::set<std::thread::id> threads_;
};

TargetRequest SomeRequest() {
  return {.name = "r", .prompt = std::string("Hi"), .max_tokens = 4};
}

class OpenAiTargetTest : public testing::Test {
 protected:
  std::unique_ptr<Target> Open(const OpenAiTargetOptions& options = {}) {
    auto target = OpenOpenAiTarget(
        absl::StrCat("openai://127.0.0.1:", server_.port(), "/v1"), options);
    EXPECT_TRUE(target.ok()) << target.status();
    return *std::move(target);
  }

  // How a request ends that gets `answer` and then a closed connection.
  TargetEnd EndAfter(std::string_view answer) {
    const std::unique_ptr<Target> target = Open();
    Recorder recorder;
    const auto call = target->Start(SomeRequest(), &recorder);
    ScriptedConnection connection = server_.Accept();
    connection.Read();
    connection.Send(answer);
    connection.Close();
    return recorder.AwaitEnd();
  }

  ScriptedHttpServer server_;
};

TEST_F(OpenAiTargetTest, AStream) {
  const std::unique_ptr<Target> target =
      Open({.model = "m", .token = "secret"});
  Recorder recorder;
  const auto call = target->Start(SomeRequest(), &recorder);
  ScriptedConnection connection = server_.Accept();
  const ScriptedConnection::Request request = connection.Read();
  EXPECT_THAT(request.head,
              AllOf(StartsWith("POST /v1/completions HTTP/1.1\r\n"),
                    HasSubstr("\r\nContent-Type: application/json\r\n"),
                    HasSubstr("\r\nAuthorization: Bearer secret\r\n"),
                    Not(HasSubstr("Expect"))));
  const auto body = nlohmann::json::parse(request.body);
  EXPECT_EQ(body.at("model"), "m");
  EXPECT_EQ(body.at("prompt"), "Hi");
  EXPECT_EQ(body.at("max_tokens"), 4);

  connection.Send(kChunkedHead);
  // Each token is told when it comes.
  connection.SendChunk(Token("a"));
  EXPECT_THAT(recorder.AwaitOutputs(1), ElementsAre("0:a"));
  connection.SendChunk(Token(""));
  EXPECT_THAT(recorder.AwaitOutputs(2), ElementsAre("0:a", "0:"));
  connection.SendChunk(absl::StrCat(Token("\\u20ac"), ": ping\n\n", Last()));
  EXPECT_THAT(recorder.AwaitOutputs(3), ElementsAre("0:a", "0:", "0:\u20ac"));
  connection.SendChunk(absl::StrCat(Usage(2, 4), std::string(kDone)));
  connection.SendChunk("");

  const TargetEnd end = recorder.AwaitEnd();
  EXPECT_TRUE(end.status.ok()) << end.status;
  EXPECT_EQ(recorder.num_tokens(), 3);
  EXPECT_EQ(end.prompt_tokens, 2);
  EXPECT_EQ(end.output_tokens, 4);
  EXPECT_EQ(end.queue_duration, std::nullopt);
}

TEST_F(OpenAiTargetTest, SamplesAreToldApart) {
  const std::unique_ptr<Target> target = Open();
  Recorder recorder;
  TargetRequest request = SomeRequest();
  request.n = 2;
  const auto call = target->Start(request, &recorder);
  ScriptedConnection connection = server_.Accept();
  EXPECT_EQ(nlohmann::json::parse(connection.Read().body).at("n"), 2);
  connection.Send(kClosingHead);
  connection.Send(absl::StrCat(Token("a", 0), Token("b", 1), Last(1),
                               Token("c", 0), Last(0)));
  connection.Close();
  // Without [DONE]: each sample had its end.
  EXPECT_TRUE(recorder.AwaitEnd().status.ok());
  EXPECT_THAT(recorder.texts(), ElementsAre("0:a", "1:b", "0:c"));
}

TEST_F(OpenAiTargetTest, OneSampleOfTwoIsNotTheEnd) {
  const std::unique_ptr<Target> target = Open();
  Recorder recorder;
  TargetRequest request = SomeRequest();
  request.n = 2;
  const auto call = target->Start(request, &recorder);
  ScriptedConnection connection = server_.Accept();
  connection.Read();
  connection.Send(absl::StrCat(std::string(kClosingHead), Token("a"), Last(0)));
  connection.Close();
  EXPECT_EQ(recorder.AwaitEnd().status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(OpenAiTargetTest, BytesMayComeOneByOne) {
  const std::unique_ptr<Target> target = Open();
  Recorder recorder;
  const auto call = target->Start(SomeRequest(), &recorder);
  ScriptedConnection connection = server_.Accept();
  connection.Read();
  connection.Send(kChunkedHead);
  const std::string body = absl::StrCat(Token("a"), Token("b"), Usage(1, 2));
  for (const char byte : body) connection.SendChunk({&byte, 1});
  connection.SendChunk(kDone);
  connection.SendChunk("");
  const TargetEnd end = recorder.AwaitEnd();
  EXPECT_TRUE(end.status.ok()) << end.status;
  EXPECT_THAT(recorder.texts(), ElementsAre("0:a", "0:b"));
  EXPECT_EQ(end.output_tokens, 2);
}

TEST_F(OpenAiTargetTest, ConnectionsAreUsedAgain) {
  const std::unique_ptr<Target> target = Open();
  std::optional<ScriptedConnection> connection;
  for (int i = 0; i < 3; ++i) {
    Recorder recorder;
    const auto call = target->Start(SomeRequest(), &recorder);
    if (!connection.has_value()) connection.emplace(server_.Accept());
    connection->Read();
    if (i == 1) {  // After an error, too.
      connection->Send(Answer("429 Too Many Requests", "{}"));
      EXPECT_FALSE(recorder.AwaitEnd().status.ok());
      continue;
    }
    connection->Send(kChunkedHead);
    connection->SendChunk(absl::StrCat(Token("a"), std::string(kDone)));
    connection->SendChunk("");
    EXPECT_TRUE(recorder.AwaitEnd().status.ok());
  }
}

TEST_F(OpenAiTargetTest, AConnectionThatTheServerClosedIsNoError) {
  const std::unique_ptr<Target> target = Open();
  for (int i = 0; i < 2; ++i) {
    Recorder recorder;
    const auto call = target->Start(SomeRequest(), &recorder);
    ScriptedConnection connection = server_.Accept();
    connection.Read();
    connection.Send(kChunkedHead);
    connection.SendChunk(kDone);
    connection.SendChunk("");
    EXPECT_TRUE(recorder.AwaitEnd().status.ok());
  }
}

TEST_F(OpenAiTargetTest, HttpErrors) {
  EXPECT_EQ(
      EndAfter(Answer("400 Bad Request",
                      R"({"error":{"code":400,"message":"prompt too long"}})"))
          .status,
      absl::InvalidArgumentError("HTTP 400: prompt too long"));
  EXPECT_EQ(EndAfter(Answer("429 Too Many Requests",
                            R"({"error":{"message":"slow down"}})"))
                .status,
            absl::ResourceExhaustedError("HTTP 429: slow down"));
  EXPECT_EQ(EndAfter(Answer("500 Oops", "<h1>Oops</h1>")).status,
            absl::InternalError("HTTP 500: <h1>Oops</h1>"));
  EXPECT_EQ(EndAfter(Answer("503 Busy", "")).status,
            absl::UnavailableError("HTTP 503"));
}

TEST_F(OpenAiTargetTest, AnErrorInTheStream) {
  const TargetEnd end = EndAfter(absl::StrCat(
      std::string(kClosingHead), Token("a"),
      "data: {\"error\":{\"code\":503,\"message\":\"out of pages\"}}\n\n",
      std::string(kDone)));
  EXPECT_EQ(end.status, absl::UnavailableError(
                            "the server broke off with error 503: out of "
                            "pages"));
  EXPECT_EQ(EndAfter(absl::StrCat(std::string(kClosingHead),
                                  "event: error\ndata: {}\n\n"))
                .status.code(),
            absl::StatusCode::kInternal);
}

TEST_F(OpenAiTargetTest, WhatMakesNoSense) {
  const absl::Status no_json =
      EndAfter(absl::StrCat(std::string(kClosingHead), "data: {oops\n\n"))
          .status;
  EXPECT_EQ(no_json.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(MessageOf(no_json), HasSubstr("'{oops'"));

  const absl::Status sample =
      EndAfter(absl::StrCat(std::string(kClosingHead), Token("a", 1))).status;
  EXPECT_EQ(sample.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(MessageOf(sample), HasSubstr("sample 1 of 1"));

  const absl::Status no_stream =
      EndAfter(Answer("200 OK", R"({"choices":[]})")).status;
  EXPECT_EQ(no_stream.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(MessageOf(no_stream), AllOf(HasSubstr("'application/json'"),
                                          HasSubstr("text/event-stream")));
}

TEST_F(OpenAiTargetTest, AServerThatDies) {
  const absl::Status closed =
      EndAfter(absl::StrCat(std::string(kClosingHead), Token("a"), Token("b")))
          .status;
  EXPECT_EQ(closed, absl::UnavailableError(
                        "the stream ended after 2 tokens, before [DONE]"));

  const absl::Status cut =
      EndAfter(absl::StrCat(std::string(kChunkedHead), "ff\r\n", Token("a")))
          .status;
  EXPECT_EQ(cut.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(cut),
              StartsWith("the stream ended after 1 tokens, before [DONE]: "));

  const absl::Status silent = EndAfter("").status;
  EXPECT_EQ(silent.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(silent), StartsWith("no answer came: "));
}

TEST_F(OpenAiTargetTest, AConnectionThatIsReset) {
  const std::unique_ptr<Target> target = Open();
  Recorder recorder;
  const auto call = target->Start(SomeRequest(), &recorder);
  ScriptedConnection connection = server_.Accept();
  connection.Read();
  connection.Send(kChunkedHead);
  connection.SendChunk(Token("a"));
  recorder.AwaitOutputs(1);
  connection.Reset();
  const absl::Status status = recorder.AwaitEnd().status;
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(status), HasSubstr("after 1 tokens"));
  EXPECT_THAT(MessageOf(status), HasSubstr("reset"));
}

TEST_F(OpenAiTargetTest, NobodyListens) {
  int port = 0;
  {
    const ScriptedHttpServer gone;
    port = gone.port();
  }
  const std::string host = absl::StrCat("127.0.0.1:", port);
  const auto target = OpenOpenAiTarget(absl::StrCat("openai://", host, "/v1"));
  ASSERT_TRUE(target.ok());
  Recorder recorder;
  const auto call = (*target)->Start(SomeRequest(), &recorder);
  const absl::Status status = recorder.AwaitEnd().status;
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(status), HasSubstr("Connection refused"));

  const absl::Status described = (*target)->Describe().status();
  EXPECT_EQ(described.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(described),
              AllOf(HasSubstr(host), HasSubstr("Connection refused"),
                    HasSubstr("check")));
}

TEST_F(OpenAiTargetTest, NoFileIsLeft) {
  const std::unique_ptr<Target> target = Open();
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit none = limit;
  none.rlim_cur = 3;  // Standard input, output and error, which are open.
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  Recorder recorder;
  const auto call = target->Start(SomeRequest(), &recorder);
  const absl::Status status = recorder.AwaitEnd().status;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(status), HasSubstr("ulimit -n"));
}

TEST_F(OpenAiTargetTest, Cancel) {
  const std::unique_ptr<Target> target = Open();
  Recorder recorder;
  const auto call = target->Start(SomeRequest(), &recorder);
  ScriptedConnection connection = server_.Accept();
  connection.Read();
  connection.Send(kChunkedHead);
  connection.SendChunk(Token("a"));
  recorder.AwaitOutputs(1);
  call->Cancel();
  EXPECT_EQ(recorder.AwaitEnd().status.code(), absl::StatusCode::kCancelled);
  connection.AwaitClosed();
  call->Cancel();
}

TEST_F(OpenAiTargetTest, CancelAtOnce) {
  const std::unique_ptr<Target> target = Open();
  Recorder recorder;
  target->Start(SomeRequest(), &recorder)->Cancel();
  EXPECT_EQ(recorder.AwaitEnd().status.code(), absl::StatusCode::kCancelled);
}

TEST_F(OpenAiTargetTest, ADeadlineClosesTheConnection) {
  const std::unique_ptr<Target> target = Open();
  Recorder recorder;
  TargetRequest request = SomeRequest();
  request.deadline = absl::Now() + absl::Milliseconds(100);
  const auto call = target->Start(request, &recorder);
  ScriptedConnection connection = server_.Accept();
  EXPECT_EQ(recorder.AwaitEnd().status.code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_GE(absl::Now(), request.deadline);
}

TEST_F(OpenAiTargetTest, ADeadlineThatPassedSendsNothing) {
  const std::unique_ptr<Target> target = Open();
  Recorder recorder;
  TargetRequest request = SomeRequest();
  request.deadline = absl::Now() - absl::Milliseconds(1);
  const auto late = target->Start(request, &recorder);
  EXPECT_EQ(recorder.AwaitEnd().status.code(),
            absl::StatusCode::kDeadlineExceeded);
  // The first connection is that of the next request.
  Recorder next_recorder;
  request = SomeRequest();
  request.max_tokens = 77;
  const auto next = target->Start(request, &next_recorder);
  ScriptedConnection connection = server_.Accept();
  EXPECT_THAT(connection.Read().body, HasSubstr("77"));
  next->Cancel();
  next_recorder.AwaitEnd();
}

TEST_F(OpenAiTargetTest, ASlowReaderHoldsTheServerBack) {
  const std::unique_ptr<Target> target = Open();
  Recorder recorder;
  TargetRequest request = SomeRequest();
  request.read_delay = absl::Hours(1);
  const auto call = target->Start(request, &recorder);
  ScriptedConnection connection = server_.Accept();
  connection.Read();
  connection.Send(kClosingHead);
  // Far more than the buffers of two sockets and of the client hold.
  constexpr size_t kMany = size_t{64} << 20;
  EXPECT_LT(connection.SendUntilFull(Token("a"), kMany), kMany);
  EXPECT_THAT(recorder.texts(), ElementsAre("0:a"));
  call->Cancel();
  EXPECT_EQ(recorder.AwaitEnd().status.code(), absl::StatusCode::kCancelled);
}

TEST_F(OpenAiTargetTest, ASlowReaderTakesEverythingInTheEnd) {
  const std::unique_ptr<Target> target = Open();
  Recorder recorder;
  TargetRequest request = SomeRequest();
  request.read_delay = absl::Milliseconds(1);
  const absl::Time start = absl::Now();
  const auto call = target->Start(request, &recorder);
  ScriptedConnection connection = server_.Accept();
  connection.Read();
  connection.Send(kClosingHead);
  // More than curl hands over at once, so that it must pause and go on.
  constexpr int kCount = 300;
  const std::string padding(200, 'x');
  std::string body;
  std::vector<std::string> expected;
  for (int i = 0; i < kCount; ++i) {
    absl::StrAppend(&body, Token(absl::StrCat(i, padding)));
    expected.push_back(absl::StrCat("0:", i, padding));
  }
  connection.Send(absl::StrCat(body, std::string(kDone)));
  connection.Close();
  EXPECT_TRUE(recorder.AwaitEnd().status.ok());
  EXPECT_EQ(recorder.texts(), expected);
  EXPECT_GE(absl::Now() - start, kCount * request.read_delay);
}

TEST_F(OpenAiTargetTest, AThousandStreamsAtOnce) {
  constexpr int kStreams = 1000;
  const std::unique_ptr<Target> target = Open();
  std::deque<Recorder> recorders(kStreams);
  std::vector<std::unique_ptr<TargetCall>> calls;
  std::vector<ScriptedConnection> connections;
  std::vector<int> stream_of;  // Of each connection; they come in any order.
  for (int i = 0; i < kStreams; ++i) {
    TargetRequest request = SomeRequest();
    request.max_tokens = i + 1;
    calls.push_back(target->Start(request, &recorders[i]));
  }
  for (int i = 0; i < kStreams; ++i) {
    connections.push_back(server_.Accept());
  }
  for (ScriptedConnection& connection : connections) {
    const auto body = nlohmann::json::parse(connection.Read().body);
    stream_of.push_back(body.at("max_tokens").get<int>() - 1);
    connection.Send(kChunkedHead);
  }
  // All are open: each gets its tokens in turn, with its number in them.
  for (const char* const text : {"a", "b"}) {
    for (int i = 0; i < kStreams; ++i) {
      connections[i].SendChunk(Token(absl::StrCat(text, stream_of[i])));
    }
    for (Recorder& recorder : recorders) {
      recorder.AwaitOutputs(*text == 'a' ? 1 : 2);
    }
  }
  std::set<std::thread::id> threads;
  for (int i = 0; i < kStreams; ++i) {
    connections[i].SendChunk(kDone);
    connections[i].SendChunk("");
  }
  for (int i = 0; i < kStreams; ++i) {
    EXPECT_TRUE(recorders[i].AwaitEnd().status.ok());
    EXPECT_THAT(recorders[i].texts(),
                ElementsAre(absl::StrCat("0:a", i), absl::StrCat("0:b", i)));
    threads.merge(recorders[i].threads());
  }
  EXPECT_THAT(threads, SizeIs(1));
}

TEST_F(OpenAiTargetTest, ACallMayGoInItsOnEnd) {
  class Owner final : public TargetListener {
   public:
    void OnOutput(const Output&) override {}
    void OnEnd(TargetEnd) override {
      {
        const std::lock_guard lock(mutex_);
        call_.reset();
      }
      ended_.set_value();
    }
    std::mutex mutex_;
    std::unique_ptr<TargetCall> call_;
    std::promise<void> ended_;
  };
  const std::unique_ptr<Target> target = Open();
  Owner owner;
  {
    const std::lock_guard lock(owner.mutex_);
    owner.call_ = target->Start(SomeRequest(), &owner);
  }
  ScriptedConnection connection = server_.Accept();
  connection.Read();
  connection.Close();
  owner.ended_.get_future().wait();
}

TEST_F(OpenAiTargetTest, ACallWaitsForAnOnEndThatRuns) {
  class SlowListener final : public TargetListener {
   public:
    void OnOutput(const Output&) override {}
    void OnEnd(TargetEnd) override {
      entered_.set_value();
      absl::SleepFor(absl::Milliseconds(50));
      left_ = true;
    }
    std::promise<void> entered_;
    std::atomic<bool> left_ = false;
  };
  const std::unique_ptr<Target> target = Open();
  SlowListener listener;
  auto call = target->Start(SomeRequest(), &listener);
  call->Cancel();
  listener.entered_.get_future().wait();
  call.reset();
  EXPECT_TRUE(listener.left_);
}

TEST_F(OpenAiTargetTest, DescribeFindsTheModelThatIsAskedFor) {
  const std::unique_ptr<Target> target = Open({.token = "secret"});
  auto info =
      std::async(std::launch::async, [&] { return target->Describe(); });
  ScriptedConnection connection = server_.Accept();
  const std::string head = connection.Read().head;
  EXPECT_THAT(head, AllOf(StartsWith("GET /v1/models HTTP/1.1\r\n"),
                          HasSubstr("\r\nAuthorization: Bearer secret\r\n")));
  connection.Send(Answer("200 OK", R"({"data":[{"id":"tiny"}]})"));
  const absl::StatusOr<TargetInfo> told = info.get();
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->model, "tiny");
  EXPECT_EQ(told->server, "test");

  Recorder recorder;
  const auto call = target->Start(SomeRequest(), &recorder);
  EXPECT_EQ(nlohmann::json::parse(connection.Read().body).at("model"), "tiny");
  connection.Send(Answer("429 Too Many Requests", ""));
  recorder.AwaitEnd();
}

TEST_F(OpenAiTargetTest, DescribeSaysWhatIsWrong) {
  const std::unique_ptr<Target> target = Open();
  const auto describe = [&](const std::string& answer) {
    auto info =
        std::async(std::launch::async, [&] { return target->Describe(); });
    ScriptedConnection connection = server_.Accept();
    connection.Read();
    connection.Send(answer);
    connection.Close();
    return info.get().status();
  };
  const std::string url =
      absl::StrCat("http://127.0.0.1:", server_.port(), "/v1/models");
  const absl::Status refused =
      describe(Answer("401 Unauthorized", R"({"error":"Unauthorized"})"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(MessageOf(refused),
              AllOf(StartsWith(url), HasSubstr("HTTP 401: Unauthorized"),
                    HasSubstr("token")));
  const absl::Status page = describe(Answer("200 OK", "<html>"));
  EXPECT_EQ(page.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(page), AllOf(StartsWith(url), HasSubstr("'<html>'")));
}

TEST(OpenOpenAiTargetTest, Addresses) {
  for (const char* const good :
       {"openai://localhost:8080/v1", "openai://[::1]:8080/a/b/", "h:1"}) {
    EXPECT_TRUE(OpenOpenAiTarget(good).ok()) << good;
  }
  for (const char* const bad :
       {"", "openai://", "openai://:80", "openai://host", "openai://host/v1",
        "openai://host:0/v1", "openai://host:65536", "openai://host:http",
        "openai://::1:80", "openai://a@b:80", "openai://h:80/v1?x",
        "openai://h:80/v 1", "openai://[::1:80", "https://h:80/v1"}) {
    const absl::Status status = OpenOpenAiTarget(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(MessageOf(status), HasSubstr("openai://HOST:PORT/v1"));
  }
}

TEST(OpenOpenAiTargetTest, Tokens) {
  EXPECT_TRUE(OpenOpenAiTarget("h:1", {.token = "sk-1_2.3"}).ok());
  for (const char* const bad : {"a b", "a\nX: y", "\xC3\xA9"}) {
    EXPECT_EQ(OpenOpenAiTarget("h:1", {.token = bad}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace folio
