// Faults that other serving runtimes have had, as clients would see them: those
// of requests' lives. Each has the number of its kind; see also the engine's
// fault_test.cc, and health_test.cc and drain_wire_test.py for 3 and 36.

#include <grpcpp/client_context.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/time/clock.h"
#include "folio/v1/generation.grpc.pb.h"
#include "folio/v1/introspection.grpc.pb.h"
#include "tests/runtime/server/batch_call.h"
#include "tests/runtime/server/scrape.h"
#include "tests/runtime/server/server_fixture.h"
#include "tests/support/scripted_model.h"

namespace folio {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class WireFaultTest : public ServerFixture {
 protected:
  // Reads the report of each batch up to `last`.
  static std::vector<v1::BatchReport> ReadReports(
      grpc::ClientReader<v1::BatchReport>& reader, int64_t last) {
    std::vector<v1::BatchReport> reports;
    v1::BatchReport report;
    while (report.step() < last && reader.Read(&report)) {
      reports.push_back(report);
    }
    EXPECT_EQ(report.step(), last);
    return reports;
  }

  static bool Names(const v1::BatchReport& report, const std::string& request) {
    for (const v1::SequenceMemory& sequence : report.memory().sequences()) {
      if (sequence.request_id() == request) return true;
    }
    return false;
  }

  // How many requests have ended so, by the server's counters.
  double NumEnded(const std::string& reason) const {
    return ScrapeOf(server_->metrics_address())
        .Value("folio:request_success_total",
               "finished_reason=\"" + reason + "\"");
  }

  // Lets steps through until this one stands at the gate.
  void GoOnUntilStep(int64_t step) {
    for (int64_t next = gate_.num_arrived() + 1; next <= step; ++next) {
      gate_.LetOneThrough();
      ASSERT_TRUE(gate_.WaitForArrivals(next, kPatience));
    }
  }
};

// The pool has room for about four of these at a time.
TEST_F(WireFaultTest, Fault01_DroppedClientsLeaveNothingBehind) {
  constexpr int kThreads = 8;
  constexpr int kRequests = 15;  // Of each thread; every third is dropped.
  constexpr int32_t kTokens = 100;
  EngineOptions options = OptionsFor(/*num_pages=*/32);
  options.scheduler.max_batch_sequences = 8;
  StartServer(options, {.telemetry = {.metrics_listen = "127.0.0.1:0"}});
  // So that the others are far from their ends when they are dropped.
  gate_.SetDelay(std::chrono::milliseconds(1));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      for (int i = 0; i < kRequests; ++i) {
        const std::vector<TokenId> prompt = {thread, i};
        size_t num_tokens = 0;
        const bool drop = i % 3 == 0;
        v1::GenerateRequest request = RequestOf(prompt, kTokens);
        request.set_ignore_eos(drop);
        const absl::Status status = client_->Generate(
            request,
            [&](const v1::GenerateResponse& response) {
              num_tokens += response.token_ids_size();
              return !drop || num_tokens < 10;
            },
            absl::Now() + absl::FromChrono(kPatience));
        if (drop) {
          EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
        } else {
          EXPECT_TRUE(status.ok()) << status;
          EXPECT_EQ(num_tokens, Expected(prompt, kTokens).size());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectNoPagesInUse();
  EXPECT_EQ(NumEnded("abort"), kThreads * kRequests / 3);
  // The server lives, and all of its pool can be had: 512 tokens.
  EXPECT_EQ(Generate(EndlessRequest(505)).tokens, ExpectedEndless(505));
}

enum class How { kDisconnect, kCancelInBatch, kAbort };
enum class When { kQueued, kPrefill, kDecode };

// A request that is ended while another one is live.
class Fault21Test : public WireFaultTest,
                    public testing::WithParamInterface<std::tuple<How, When>> {
 protected:
  How how() const { return std::get<How>(GetParam()); }
  When when() const { return std::get<When>(GetParam()); }

  void Start() {
    constexpr int32_t kChunk = 16;  // Of prompts.
    EngineOptions options = OptionsFor(/*num_pages=*/512);
    options.scheduler.max_batch_sequences = when() == When::kQueued ? 1 : 2;
    options.scheduler.max_batch_tokens = kChunk;
    StartServer(options);
    gate_.Close();
    channel_ = NewChannel();
    generation_ = v1::Generation::NewStub(channel_);
  }

  v1::GenerateRequest Victim() const {
    constexpr size_t kSeveralChunks = 100;
    v1::GenerateRequest request = RequestOf(
        std::vector<TokenId>(when() == When::kPrefill ? kSeveralChunks : 1, 9),
        1000);
    request.set_request_id("victim");
    request.set_ignore_eos(true);
    return request;
  }

  // Sends the victim.
  void Send() {
    if (how() == How::kCancelInBatch) {
      batch_ = std::make_unique<BatchCall>(channel_);
      batch_->Submit(Victim());
    } else {
      reader_ = generation_->Generate(&context_, Victim());
    }
  }

  void End() {
    switch (how()) {
      case How::kDisconnect:
        context_.TryCancel();
        return;
      case How::kCancelInBatch:
        batch_->Cancel("victim");
        return;
      case How::kAbort: {
        v1::AbortRequest request;
        request.set_request_id("victim");
        grpc::ClientContext context;
        v1::AbortResponse response;
        const grpc::Status status =
            generation_->Abort(&context, request, &response);
        EXPECT_TRUE(status.ok()) << status.error_message();
        return;
      }
    }
  }

  // How the victim ended, as its client is told.
  int StatusCode() {
    if (how() == How::kCancelInBatch) {
      return batch_->ReadToEnd().at("victim").status.code();
    }
    v1::GenerateResponse response;
    while (reader_->Read(&response)) continue;
    return reader_->Finish().error_code();
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Generation::Stub> generation_;
  grpc::ClientContext context_;  // Of the victim's call, if it has its own.
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader_;
  std::unique_ptr<BatchCall> batch_;
};

TEST_P(Fault21Test, ItStopsWithinAStepAndHarmsNobody) {
  constexpr int32_t kTokens = 20;
  Start();
  const auto introspection = v1::Introspection::NewStub(NewChannel());
  grpc::ClientContext watch_context;
  const auto reports = introspection->WatchBatches(&watch_context, {});
  reports->WaitForInitialMetadata();
  std::future<Reply> other = std::async(
      std::launch::async, [&] { return Generate(EndlessRequest(kTokens)); });
  ASSERT_TRUE(gate_.WaitForArrivals(1, kPatience));

  Send();
  ASSERT_TRUE(WaitForNewsToTheEngine());
  const int64_t last_step = when() == When::kDecode ? 4 : 2;
  ASSERT_NO_FATAL_FAILURE(GoOnUntilStep(last_step));
  End();
  ASSERT_TRUE(WaitForNewsToTheEngine());
  gate_.Open();

  const Reply reply = other.get();
  EXPECT_TRUE(reply.status.ok()) << reply.status;
  EXPECT_EQ(reply.tokens, ExpectedEndless(kTokens));
  EXPECT_EQ(StatusCode(), how() == How::kAbort ? grpc::StatusCode::ABORTED
                                               : grpc::StatusCode::CANCELLED);
  ExpectNoPagesInUse();
  // One step for each token of the other: the victim has had none alone.
  for (const v1::BatchReport& report : ReadReports(*reports, kTokens)) {
    const bool is_live = report.step() <= last_step && report.step() > 1;
    EXPECT_EQ(Names(report, "victim"), is_live && when() != When::kQueued)
        << "step " << report.step();
    EXPECT_EQ(report.sequences_waiting(), is_live && when() == When::kQueued)
        << "step " << report.step();
    // It was where the test wants it.
    EXPECT_EQ(report.prefill_tokens() > 1 && report.step() == last_step,
              when() == When::kPrefill && report.step() == last_step);
  }
  EXPECT_EQ(Report().step(), kTokens);
  watch_context.TryCancel();
}

std::string CaseName(
    const testing::TestParamInfo<Fault21Test::ParamType>& info) {
  const char* const hows[] = {"ByDisconnect", "InItsBatch", "ByAbort"};
  const char* const whens[] = {"WhileQueued", "InPrefill", "InDecode"};
  return std::string(hows[static_cast<int>(std::get<How>(info.param))]) +
         whens[static_cast<int>(std::get<When>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(
    Fault21_Cancelled, Fault21Test,
    testing::Combine(
        testing::Values(How::kDisconnect, How::kCancelInBatch, How::kAbort),
        testing::Values(When::kQueued, When::kPrefill, When::kDecode)),
    CaseName);

TEST_F(WireFaultTest, Fault28_LogitsThatAreNoNumbersFailTheirRequestAlone) {
  constexpr int32_t kTokens = 20;
  StartServer(OptionsFor(/*num_pages=*/32),
              {.telemetry = {.metrics_listen = "127.0.0.1:0"}});
  const auto introspection = v1::Introspection::NewStub(NewChannel());
  grpc::ClientContext context;
  const auto reports = introspection->WatchBatches(&context, {});
  reports->WaitForInitialMetadata();
  // One request more in each step; the third of them has the NaN.
  gate_.Close();
  const v1::GenerateRequest poisoned =
      RequestOf({1, ScriptedModel::kPoison}, kTokens);
  std::vector<std::future<Reply>> replies;
  for (const v1::GenerateRequest& request :
       {EndlessRequest(kTokens), EndlessRequest(kTokens), poisoned}) {
    replies.push_back(std::async(
        std::launch::async, [this, request] { return Generate(request); }));
    if (replies.size() > 1) {
      ASSERT_TRUE(WaitForNewsToTheEngine());
      gate_.LetOneThrough();
    }
    ASSERT_TRUE(
        gate_.WaitForArrivals(static_cast<int64_t>(replies.size()), kPatience));
  }
  gate_.Open();

  for (int i : {0, 1}) {
    const Reply reply = replies[i].get();
    EXPECT_TRUE(reply.status.ok()) << reply.status;
    EXPECT_EQ(reply.tokens, ExpectedEndless(kTokens));
  }
  const Reply failed = replies[2].get();
  EXPECT_EQ(failed.status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(failed.status.message()),
              HasSubstr("logits that are not finite"));
  EXPECT_THAT(failed.tokens, IsEmpty());
  ExpectNoPagesInUse();
  EXPECT_EQ(ReadReports(*reports, 3).back().sequences_running(), 3);
  EXPECT_EQ(NumEnded("error"), 1);
  EXPECT_EQ(NumEnded("length"), 2);
  context.TryCancel();
}

}  // namespace
}  // namespace folio
