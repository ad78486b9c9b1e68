// What clients see of a server: order, completeness, fairness, ends.

#include "runtime/server/server.h"

#include <grpcpp/client_context.h>

#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "folio/v1/generation.grpc.pb.h"
#include "folio/v1/introspection.grpc.pb.h"
#include "tests/runtime/server/report_identities.h"
#include "tests/runtime/server/server_fixture.h"
#include "tests/support/scripted_model.h"

namespace folio {
namespace {

using testing::HasSubstr;

class ServerTest : public ServerFixture {};

// Reads reports from WatchBatches on a thread of its own. They must come
// without a gap and be consistent.
class Watcher {
 public:
  explicit Watcher(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::Introspection::NewStub(channel)),
        reader_(stub_->WatchBatches(&context_, {})) {
    reader_->WaitForInitialMetadata();
    thread_ = std::thread([this] { Run(); });
  }

  ~Watcher() {
    context_.TryCancel();
    thread_.join();
  }

  // Returns when the report of `step` was read; fails when that takes long.
  void WaitForStep(int64_t step) const {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    while (last_step_ < step) {
      ASSERT_LT(absl::Now(), deadline)
          << "the last report is of step " << last_step_ << ", not " << step;
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  int64_t num_preempted() const { return num_preempted_; }
  int32_t most_running() const { return most_running_; }

 private:
  void Run() {
    v1::BatchReport report;
    while (reader_->Read(&report)) {
      ExpectIdentities(report);
      if (last_step_ > 0) {
        EXPECT_EQ(report.step(), last_step_ + 1 + report.dropped_reports());
      }
      num_preempted_ += report.sequences_preempted();
      most_running_ =
          std::max<int32_t>(most_running_, report.sequences_running());
      last_step_ = report.step();
    }
    reader_->Finish();
  }

  grpc::ClientContext context_;
  std::unique_ptr<v1::Introspection::Stub> stub_;
  std::unique_ptr<grpc::ClientReader<v1::BatchReport>> reader_;
  std::atomic<int64_t> last_step_ = 0;
  std::atomic<int64_t> num_preempted_ = 0;
  std::atomic<int32_t> most_running_ = 0;
  std::thread thread_;
};

std::vector<TokenId> RandomPrompt(std::mt19937& random) {
  std::vector<TokenId> prompt(1 + random() % 60);
  for (TokenId& token : prompt) token = random() % ScriptedModel::kPoison;
  return prompt;
}

// The parts of a reply that hold for every complete one.
void ExpectWellFormed(const Reply& reply, const std::string& request_id) {
  ASSERT_FALSE(reply.responses.empty());
  for (size_t i = 0; i < reply.responses.size(); ++i) {
    const v1::GenerateResponse& response = reply.responses[i];
    EXPECT_EQ(response.request_id(), request_id);
    EXPECT_EQ(response.has_seed(), i == 0);
    EXPECT_EQ(response.has_usage(), i + 1 == reply.responses.size());
  }
}

TEST_F(ServerTest, ManyStreamsAtOnceLoseNothingAndAddUp) {
  constexpr int kStreams = 64;
  constexpr int kSeed = 20240229;
  // Two or three of the longest sequences fill the pool.
  EngineOptions options = OptionsFor(/*num_pages=*/32);
  options.scheduler.max_batch_sequences = 16;
  options.scheduler.max_batch_tokens = 64;
  StartServer(options);
  gate_.SetDelay(std::chrono::milliseconds(1));  // So that they do meet.
  Watcher watcher(NewChannel());

  std::vector<std::thread> threads;
  for (int i = 0; i < kStreams; ++i) {
    threads.emplace_back([this, i] {
      std::mt19937 random(kSeed + i);
      const std::vector<TokenId> prompt = RandomPrompt(random);
      const int32_t max_tokens = 1 + random() % 120;
      v1::GenerateRequest request = RequestOf(prompt, max_tokens);
      request.set_request_id(absl::StrCat("stream ", i));
      const Reply reply = Generate(request);
      const std::vector<TokenId> expected = Expected(prompt, max_tokens);
      EXPECT_TRUE(reply.status.ok()) << reply.status << ", seed " << kSeed + i;
      EXPECT_EQ(reply.tokens, expected) << "seed " << kSeed + i;
      EXPECT_EQ(reply.text, TextOf(expected)) << "seed " << kSeed + i;
      ASSERT_NO_FATAL_FAILURE(ExpectWellFormed(reply, request.request_id()));
      const v1::GenerateResponse& last = reply.responses.back();
      EXPECT_EQ(last.finish_reason(), expected.back() == ScriptedModel::kEos
                                          ? v1::FINISH_REASON_STOP
                                          : v1::FINISH_REASON_LENGTH);
      EXPECT_EQ(last.usage().prompt_tokens(), prompt.size());
      EXPECT_EQ(last.usage().generated_tokens(), expected.size());
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectNoPagesInUse();
  ASSERT_NO_FATAL_FAILURE(watcher.WaitForStep(Report().step()));
  EXPECT_GT(watcher.most_running(), 1);
  EXPECT_GT(watcher.num_preempted(), 0) << "the pool was not small enough";
}

TEST_F(ServerTest, AClientThatDoesNotReadHoldsNobodyUp) {
  constexpr int32_t kTokens = 4000;
  StartServer(OptionsFor(/*num_pages=*/512));
  const auto stub = v1::Generation::NewStub(NewChannel());
  v1::GenerateRequest request = EndlessRequest(kTokens);
  // Some 300 bytes a token: far more than windows and socket buffers hold.
  request.mutable_sampling()->set_logprobs(20);
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, request);

  // Others are served, and the request runs to its end, without a single read.
  for (int i = 0; i < 10; ++i) {
    const Reply reply = Generate(RequestOf({i}, 50));
    EXPECT_TRUE(reply.status.ok()) << reply.status;
    EXPECT_EQ(reply.tokens, Expected({i}, 50));
  }
  ExpectNoPagesInUse();

  Reply reply;
  v1::GenerateResponse response;
  while (reader->Read(&response)) {
    reply.Add(response);
    EXPECT_EQ(response.logprobs_size(), response.token_ids_size());
    EXPECT_LT(response.ByteSizeLong(), 4u << 20) << "gRPC's default limit";
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(reply.tokens, ExpectedEndless(kTokens));
  // Without coalescing there would be one response for each token.
  EXPECT_LT(reply.responses.size(), kTokens / 2);
}

TEST_F(ServerTest, EachSampleOfASlowClientGathersForItself) {
  constexpr int32_t kTokens = 1000;
  constexpr int kSamples = 3;
  StartServer(OptionsFor(/*num_pages=*/512));
  const auto stub = v1::Generation::NewStub(NewChannel());
  v1::GenerateRequest request = EndlessRequest(kTokens);
  request.mutable_sampling()->set_logprobs(20);  // As above.
  request.set_n(kSamples);
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, request);
  reader->WaitForInitialMetadata();  // It comes with the first response.
  ExpectNoPagesInUse();              // All is computed, and nothing is read.

  Reply all;
  std::map<int32_t, Reply> samples;
  v1::GenerateResponse response;
  while (reader->Read(&response)) {
    all.Add(response);
    samples[response.sample_index()].Add(response);
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(samples.size(), kSamples);
  for (const auto& [index, sample] : samples) {
    EXPECT_EQ(sample.tokens, ExpectedEndless(kTokens));
    EXPECT_EQ(sample.text, TextOf(sample.tokens));
    EXPECT_EQ(sample.responses.back().finish_reason(),
              v1::FINISH_REASON_LENGTH);
  }
  ExpectWellFormed(all, all.responses.front().request_id());
  // Without coalescing there would be one for each token of each sample.
  EXPECT_LT(all.responses.size(), kSamples * kTokens / 2);
}

TEST_F(ServerTest, AWatcherThatDoesNotReadMissesTheOldestReports) {
  StartServer(OptionsFor(/*num_pages=*/512));
  const auto stub = v1::Introspection::NewStub(NewChannel());
  grpc::ClientContext context;
  const auto reader = stub->WatchBatches(&context, {});
  reader->WaitForInitialMetadata();
  // Some 4,000 reports of more than 100 bytes; windows hold 64 KiB, the queue
  // 256 reports.
  EXPECT_TRUE(Generate(EndlessRequest()).status.ok());
  const int64_t num_steps = Report().step();

  int64_t last_step = 0;
  int64_t num_dropped = 0;
  v1::BatchReport report;
  while (last_step < num_steps && reader->Read(&report)) {
    EXPECT_EQ(report.step(), last_step + 1 + report.dropped_reports());
    last_step = report.step();
    num_dropped += report.dropped_reports();
  }
  EXPECT_EQ(last_step, num_steps);
  EXPECT_GT(num_dropped, 0);
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ServerTest, TheDeadlineEndsARequest) {
  StartServer(OptionsFor(/*num_pages=*/512));
  gate_.SetDelay(std::chrono::milliseconds(5));  // 20 seconds for all.
  const absl::Time start = absl::Now();
  const Reply reply =
      Generate(EndlessRequest(), start + absl::Milliseconds(300));
  EXPECT_EQ(reply.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  EXPECT_FALSE(reply.tokens.empty());
  ExpectNoPagesInUse();
  EXPECT_LT(Report().step(), kContext / 4);
}

TEST_F(ServerTest, AFullServerRefusesAtOnce) {
  EngineOptions options = OptionsFor(/*num_pages=*/512);
  options.scheduler.max_batch_sequences = 1;
  options.queue.max_waiting_requests = 1;
  StartServer(options);
  gate_.Close();
  std::atomic<int> num_refused = 0;
  std::atomic<int> num_served = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const Reply reply = Generate(RequestOf({1}, 3));
      if (reply.status.ok()) {
        ++num_served;
        return;
      }
      EXPECT_EQ(reply.status.code(), absl::StatusCode::kResourceExhausted);
      EXPECT_THAT(std::string(reply.status.message()),
                  HasSubstr("2 requests are running or waiting"));
      ++num_refused;
      gate_.Open();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_refused, 1);
  EXPECT_EQ(num_served, 2);
  EXPECT_TRUE(Generate(RequestOf({1}, 3)).status.ok());
}

TEST_F(ServerTest, ShutdownEndsLiveStreamsWithUnavailable) {
  StartServer(OptionsFor(/*num_pages=*/512));
  gate_.SetDelay(std::chrono::milliseconds(2));  // 8 seconds for all.
  Reply replies[2];
  std::atomic<int> num_started = 0;
  std::vector<std::thread> threads;
  for (Reply& reply : replies) {
    threads.emplace_back([&] {
      reply.status = client_->Generate(
          EndlessRequest(), [&](const v1::GenerateResponse& response) {
            if (reply.responses.empty()) ++num_started;
            reply.Add(response);
            return true;
          });
    });
  }
  while (num_started < 2) absl::SleepFor(absl::Milliseconds(1));
  server_->Shutdown(absl::ZeroDuration());
  for (std::thread& thread : threads) thread.join();
  for (const Reply& reply : replies) {
    EXPECT_EQ(reply.status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(reply.status.message()),
                HasSubstr("shutting down"));
    // Everything that was generated came, and came once.
    EXPECT_EQ(reply.tokens, ExpectedEndless(reply.tokens.size()));
    EXPECT_EQ(reply.responses.back().usage().generated_tokens(),
              reply.tokens.size());
  }
}

TEST_F(ServerTest, ShutdownLetsLiveStreamsFinishInTheGracePeriod) {
  StartServer(OptionsFor(/*num_pages=*/512));
  gate_.SetDelay(std::chrono::milliseconds(2));
  Reply live;
  std::thread shutdown;
  std::thread generate([&] {
    live.status = client_->Generate(
        EndlessRequest(400), [&](const v1::GenerateResponse& response) {
          if (live.responses.empty()) {
            shutdown = std::thread([this] {
              const absl::Time start = absl::Now();
              server_->Shutdown(absl::Seconds(60));
              EXPECT_LT(absl::Now() - start, absl::Seconds(30));
            });
          }
          live.Add(response);
          return true;
        });
  });
  while (client_->CheckHealth().ok()) absl::SleepFor(absl::Milliseconds(1));
  const Reply late = Generate(RequestOf({1}, 1));
  EXPECT_EQ(late.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(late.status.message()), HasSubstr("shutting down"));
  generate.join();
  shutdown.join();
  EXPECT_TRUE(live.status.ok()) << live.status;
  EXPECT_EQ(live.tokens, ExpectedEndless(400));
}

TEST_F(ServerTest, ABadAddressIsAnErrorThatNamesIt) {
  StartServer(OptionsFor(/*num_pages=*/32));
  const std::map<std::string, absl::StatusCode> cases = {
      {server_->address(), absl::StatusCode::kUnavailable},  // In use.
      {"192.0.2.1:0", absl::StatusCode::kUnavailable},       // Nobody's.
      {"", absl::StatusCode::kInvalidArgument},
      {"127.0.0.1", absl::StatusCode::kInvalidArgument},
      {":50051", absl::StatusCode::kInvalidArgument},
      {"127.0.0.1:http", absl::StatusCode::kInvalidArgument},
      {"127.0.0.1:-1", absl::StatusCode::kInvalidArgument},
      {"127.0.0.1:65536", absl::StatusCode::kInvalidArgument},
  };
  for (const auto& [address, code] : cases) {
    const auto server =
        Server::Start({.listen = address, .security = {.insecure = true}},
                      engine_.get(), tokenizer_.get(), &clock_);
    EXPECT_EQ(server.status().code(), code) << address;
    EXPECT_THAT(std::string(server.status().message()), HasSubstr(address));
  }
}

TEST_F(ServerTest, AStallTimeoutThatIsTooShortIsAnError) {
  StartServer(OptionsFor(/*num_pages=*/32));
  for (const absl::Duration timeout :
       {absl::Seconds(-1), absl::ZeroDuration(), absl::Milliseconds(9)}) {
    const auto server =
        Server::Start({.listen = "127.0.0.1:0", .stall_timeout = timeout},
                      engine_.get(), tokenizer_.get(), &clock_);
    EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(server.status().message()),
                HasSubstr("stall_timeout is " + absl::FormatDuration(timeout)));
  }
}

TEST_F(ServerTest, TheAddressHasTheRealPort) {
  StartServer(OptionsFor(/*num_pages=*/32));
  EXPECT_THAT(server_->address(),
              testing::MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
}

TEST_F(ServerTest, SeedsAreEchoedOrDrawn) {
  StartServer(OptionsFor(/*num_pages=*/32));
  v1::GenerateRequest request = RequestOf({1}, 2);
  std::set<uint64_t> drawn;
  for (int i = 0; i < 5; ++i) {
    drawn.insert(Generate(request).responses.front().seed());
  }
  EXPECT_EQ(drawn.size(), 5);
  request.mutable_sampling()->set_seed(~uint64_t{0});
  EXPECT_EQ(Generate(request).responses.front().seed(), ~uint64_t{0});
}

TEST_F(ServerTest, RequestsWithoutANameGetOne) {
  StartServer(OptionsFor(/*num_pages=*/32));
  const Reply first = Generate(RequestOf({1}, 1));
  const Reply second = Generate(RequestOf({1}, 1));
  EXPECT_FALSE(first.responses.front().request_id().empty());
  EXPECT_NE(first.responses.front().request_id(),
            second.responses.front().request_id());
}

TEST_F(ServerTest, ReportsNameRequestsAsTheirClientsDo) {
  StartServer(OptionsFor(/*num_pages=*/32));
  const auto stub = v1::Introspection::NewStub(NewChannel());
  grpc::ClientContext context;
  const auto reader = stub->WatchBatches(&context, {});
  reader->WaitForInitialMetadata();
  v1::GenerateRequest request = RequestOf({1, 2, 3}, 1);
  request.set_request_id("mine");
  EXPECT_TRUE(Generate(request).status.ok());
  // The one step of the request is also its last: it is named all the same.
  v1::BatchReport report;
  ASSERT_TRUE(reader->Read(&report));
  EXPECT_EQ(report.step(), 1);
  EXPECT_EQ(report.prefill_tokens(), 3);
  ASSERT_EQ(report.memory().sequences_size(), 1);
  EXPECT_EQ(report.memory().sequences(0).request_id(), "mine");
  EXPECT_EQ(report.memory().sequences(0).tokens(), 3);
  EXPECT_EQ(report.memory().sequences(0).pages(), 1);
  context.TryCancel();
}

TEST_F(ServerTest, AReportIsGivenWhenIdleAndRefusedAfterTheEngineClosed) {
  StartServer(OptionsFor(/*num_pages=*/32));
  const v1::BatchReport report = Report();
  EXPECT_EQ(report.step(), 0);
  EXPECT_EQ(report.memory().pages_total(), 32);
  EXPECT_EQ(report.memory().context_length(), kContext);
  ExpectIdentities(report);
  engine_->Close();
  EXPECT_EQ(client_->GetMemoryReport().status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(ServerTest, AReportThatDoesNotComeIsAnErrorInTime) {
  StartServer(OptionsFor(/*num_pages=*/32));
  gate_.Close();
  std::thread generate([this] { Generate(RequestOf({1}, 1)); });
  EXPECT_TRUE(gate_.WaitForArrivals(1, kPatience));
  const absl::Status status =
      client_->GetMemoryReport(/*timeout=*/absl::Milliseconds(100)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no memory report within 100ms"));
  gate_.Open();
  generate.join();
}

}  // namespace
}  // namespace folio
