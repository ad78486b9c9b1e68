// Many clients at once, most of them badly behaved; afterwards the server is as
// it was before.

#include <glog/logging.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "folio/v1/admin.grpc.pb.h"
#include "folio/v1/introspection.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/server/scrape.h"
#include "tests/runtime/server/soak_clients.h"
#include "tests/runtime/server/soak_process.h"
#include "tests/support/sanitized.h"
#include "tests/support/scripted_model.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using testing::AnyOf;

constexpr int kNumChannels = 8;
constexpr int kRequestsOfBatch = 5;
constexpr int kRounds = 4;  // After one to warm up.

// Of what the process takes after the warm-up. (At its peak it has 60 MiB more,
// and how many pages malloc can give back of those differs by a MiB or two.)
constexpr double kResidentGrowth = 0.02;

// What is allocated is known exactly. Buffers of everything that is reused are
// as long as they ever had to be, which comes to less than a MiB, whatever the
// number of requests; a call that is kept takes about 30 KiB.
constexpr int64_t kHeapMargin = 1 << 20;
constexpr int64_t kHeapBytesPerRequest = 100;

// Of gRPC's, on any machine; not one for each call.
constexpr int64_t kMaxPoolThreads = 32;

// So long may a round take, on a machine with much else to do.
constexpr absl::Duration kPatience = absl::Minutes(4);

// As many as FOLIO_SOAK_CLIENTS says, or few.
int NumClients() {
  const char* const clients = std::getenv("FOLIO_SOAK_CLIENTS");
  return clients == nullptr ? 100 : std::max(std::atoi(clients), 100);
}

// The only truth about what comes out.
std::vector<TokenId> ExpectedTokens(const SoakPlan& plan) {
  std::vector<TokenId> tokens = SoakPrompts()[plan.prompt];
  const size_t prompt_size = tokens.size();
  while (tokens.size() < prompt_size + plan.max_tokens) {
    tokens.push_back(ScriptedModel::NextToken(tokens));
  }
  return {tokens.begin() + static_cast<int64_t>(prompt_size), tokens.end()};
}

// A connection of its own, with small windows, so that what is not read stays
// with the server.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 16);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

// Polls, and fails the test when it takes too long.
template <typename Predicate>
void WaitFor(const char* what, const Predicate& is_true) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (!is_true()) {
    if (absl::Now() > deadline) {
      FAIL() << "still not after " << kPatience << ": " << what;
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
}

class SoakTest : public testing::Test {
 protected:
  SoakTest()
      : num_clients_(NumClients()),
        seed_(std::random_device()()),
        random_(seed_),
        log_path_(dir_.path() + "/requests.log"),
        server_(num_clients_ / 2, log_path_),
        channel_(NewChannel(server_.address())),
        introspection_(v1::Introspection::NewStub(channel_)),
        admin_(v1::Admin::NewStub(NewChannel(server_.admin_address()))) {
    std::cout << num_clients_ << " clients, seed " << seed_ << "\n";
  }

  // Each behaviour is that of a fifth of the clients, a quarter of whom share
  // streams.
  std::vector<std::unique_ptr<SoakCall>> MakeCalls();

  // Until all calls but those that wait for Cancel are done.
  void RunCalls(std::span<const std::unique_ptr<SoakCall>> calls);

  // One request of each client, over new connections.
  void RunRound();

  void WaitUntilIdle();
  void ExpectAllPagesFree();
  void ExpectGaugesAtZero(const Scrape& scrape);
  // Each request that was admitted is once in the log, and each line of the log
  // is in the counter of its reason.
  void ExpectCountersMatch();

  // What the server takes, when that changes no more and it has at most so many
  // descriptors.
  ProcessUsage UsageAtRest(int64_t num_descriptors);

  const int num_clients_;
  const uint64_t seed_;
  std::mt19937_64 random_;
  const TempDir dir_;
  const std::string log_path_;
  SoakProcess server_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Introspection::Stub> introspection_;
  const std::unique_ptr<v1::Admin::Stub> admin_;

  int round_ = 0;
  std::vector<SoakOutcome> outcomes_;  // Of all rounds.
};

std::vector<std::unique_ptr<SoakCall>> SoakTest::MakeCalls() {
  std::vector<std::unique_ptr<SoakCall>> calls;
  const int num_each = num_clients_ / kNumBehaviours;
  for (int i = 0; i < kNumBehaviours; ++i) {
    std::vector<SoakPlan> plans;
    for (int j = 0; j < num_each; ++j) {
      plans.push_back(MakeSoakPlan(absl::StrCat(round_, "/", i, "/", j),
                                   static_cast<Behaviour>(i), random_));
    }
    while (plans.size() > static_cast<size_t>(num_each - num_each / 4)) {
      const auto first =
          plans.end() - std::min<int64_t>(plans.size(), kRequestsOfBatch);
      calls.push_back(MakeBatchCall({first, plans.end()}));
      plans.erase(first, plans.end());
    }
    for (SoakPlan& plan : plans) {
      calls.push_back(MakeSingleCall(std::move(plan)));
    }
  }
  std::ranges::shuffle(calls, random_);
  return calls;
}

void SoakTest::RunCalls(std::span<const std::unique_ptr<SoakCall>> calls) {
  const absl::Time start = absl::Now();
  WaitFor("a round's end", [&] {
    const absl::Duration passed = absl::Now() - start;
    bool all_done = true;
    for (const auto& call : calls) {
      if (call->done()) continue;
      const Behaviour behaviour = call->outcomes()[0].plan.behaviour;
      if (call->cancel_time().has_value() && *call->cancel_time() <= passed) {
        call->Cancel();
      }
      all_done &= behaviour == Behaviour::kNeverReads && call->answered();
    }
    return all_done;
  });
}

void SoakTest::RunRound() {
  std::vector<std::unique_ptr<v1::Generation::Stub>> stubs;
  for (int i = 0; i < kNumChannels; ++i) {
    stubs.push_back(v1::Generation::NewStub(NewChannel(server_.address())));
  }
  const std::vector<std::unique_ptr<SoakCall>> calls = MakeCalls();
  for (size_t i = 0; i < calls.size(); ++i) {
    calls[i]->Start(*stubs[i % stubs.size()]);
  }
  RunCalls(calls);
  // Nobody reads what the rest have to say; their requests end all the same.
  WaitUntilIdle();
  for (const auto& call : calls) call->Cancel();
  WaitFor("the end of cancelled calls", [&] {
    return std::ranges::all_of(calls,
                               [](const auto& call) { return call->done(); });
  });
  for (const auto& call : calls) {
    outcomes_.insert(outcomes_.end(), call->outcomes().begin(),
                     call->outcomes().end());
  }
  ++round_;
}

void SoakTest::WaitUntilIdle() {
  WaitFor("no request is live", [this] {
    grpc::ClientContext context;
    v1::Load load;
    const grpc::Status status = introspection_->GetLoad(&context, {}, &load);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return load.requests_live() == 0;
  });
}

void SoakTest::ExpectAllPagesFree() {
  grpc::ClientContext flush_context;
  v1::FlushPrefixCacheResponse flushed;
  ASSERT_TRUE(admin_->FlushPrefixCache(&flush_context, {}, &flushed).ok());
  grpc::ClientContext context;
  v1::BatchReport report;
  ASSERT_TRUE(introspection_->GetMemoryReport(&context, {}, &report).ok());
  EXPECT_EQ(report.memory().pages_free(), report.memory().pages_total());
  EXPECT_GT(report.memory().pages_total(), 0);
}

void SoakTest::ExpectGaugesAtZero(const Scrape& scrape) {
  for (const char* const gauge :
       {"folio:num_requests_running", "folio:num_requests_waiting",
        "folio:kv_cache_usage_perc", "folio:kv_tokens_held",
        "folio:kv_waste_bytes", "folio:kv_shared_bytes_saved"}) {
    EXPECT_EQ(scrape.Value(gauge), 0) << gauge;
  }
  EXPECT_EQ(scrape.Value("folio:kv_pages", "state=\"in_use\""), 0);
}

using FinishReasons = std::map<std::string, std::string>;  // By request.

FinishReasons ReadLog(const std::string& path) {
  FinishReasons reasons;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json entry = nlohmann::json::parse(line);
    const bool is_new =
        reasons.emplace(entry["request_id"], entry["finish_reason"]).second;
    EXPECT_TRUE(is_new) << "ended twice: " << line;
  }
  return reasons;
}

// What came is the beginning of what has to come, and all of it where the
// request was complete.
void CheckTokens(const SoakOutcome& outcome) {
  const std::vector<TokenId> expected = ExpectedTokens(outcome.plan);
  for (const std::vector<TokenId>& tokens : outcome.tokens) {
    ASSERT_LE(tokens.size(), expected.size());
    EXPECT_TRUE(
        std::ranges::equal(tokens, std::span(expected).first(tokens.size())));
    if (outcome.status == absl::StatusCode::kOk) {
      EXPECT_EQ(tokens.size(), expected.size());
    }
  }
}

bool HasTokens(const SoakOutcome& outcome) {
  return std::ranges::any_of(
      outcome.tokens, [](const auto& tokens) { return !tokens.empty(); });
}

// How clients of each behaviour may see their requests end; any may be told
// that the queue is full.
std::set<absl::StatusCode> AllowedStatuses(Behaviour behaviour) {
  switch (behaviour) {
    case Behaviour::kStreams:
      return {absl::StatusCode::kOk, absl::StatusCode::kResourceExhausted};
    case Behaviour::kCancels:
      return {absl::StatusCode::kOk, absl::StatusCode::kResourceExhausted,
              absl::StatusCode::kCancelled};
    case Behaviour::kHasDeadline:
      return {absl::StatusCode::kOk, absl::StatusCode::kResourceExhausted,
              absl::StatusCode::kDeadlineExceeded};
    case Behaviour::kNeverReads:
      return {absl::StatusCode::kResourceExhausted,
              absl::StatusCode::kCancelled};
    case Behaviour::kSendsInvalid:
      return {absl::StatusCode::kInvalidArgument};
  }
  return {};
}

// A stream that ended before it said how a request did.
bool MayBeCutOff(const SoakOutcome& outcome) {
  const Behaviour behaviour = outcome.plan.behaviour;
  return outcome.is_batched && (behaviour == Behaviour::kCancels ||
                                behaviour == Behaviour::kHasDeadline ||
                                behaviour == Behaviour::kNeverReads);
}

// `reason` is the log's, none where the request is not in it: it was refused,
// or the server never heard of it.
void CheckEnd(const SoakOutcome& outcome,
              const std::optional<std::string>& reason) {
  const Behaviour behaviour = outcome.plan.behaviour;
  if (!outcome.status.has_value()) {
    EXPECT_TRUE(MayBeCutOff(outcome));
  } else {
    EXPECT_TRUE(AllowedStatuses(behaviour).contains(*outcome.status))
        << absl::StatusCodeToString(*outcome.status);
  }
  const bool was_refused =
      outcome.status == absl::StatusCode::kInvalidArgument ||
      outcome.status == absl::StatusCode::kResourceExhausted;
  // All alone on its call and answered, it was either refused or admitted.
  const bool was_admitted = outcome.status == absl::StatusCode::kOk ||
                            HasTokens(outcome) ||
                            (behaviour == Behaviour::kNeverReads &&
                             !outcome.is_batched && !was_refused);
  EXPECT_FALSE(was_refused && (reason.has_value() || HasTokens(outcome)));
  EXPECT_FALSE(was_admitted && !reason.has_value());
  if (!reason.has_value()) return;
  if (outcome.status == absl::StatusCode::kOk ||
      behaviour == Behaviour::kNeverReads) {
    EXPECT_EQ(*reason, "length");
  } else if (behaviour == Behaviour::kCancels) {
    EXPECT_THAT(*reason, AnyOf("abort", "length"));
  } else {
    EXPECT_THAT(*reason, AnyOf("abort", "deadline", "length"));
  }
}

void SoakTest::ExpectCountersMatch() {
  const FinishReasons reasons = ReadLog(log_path_);
  std::map<std::string, int> lines;
  for (const auto& [unused, reason] : reasons) ++lines[reason];
  const Scrape scrape = ScrapeOf(server_.metrics_address());
  ExpectGaugesAtZero(scrape);
  for (const char* const reason :
       {"stop", "length", "abort", "deadline", "shutdown", "error"}) {
    EXPECT_EQ(scrape.Value("folio:request_success_total",
                           absl::StrCat("finished_reason=\"", reason, "\"")),
              lines[reason])
        << reason;
    std::cout << "  ended, " << reason << ": " << lines[reason] << "\n";
  }
  std::map<std::string, int> statuses;
  std::map<bool, int> num_aborted;  // By whether they share streams.
  size_t num_in_log = 0;
  for (const SoakOutcome& outcome : outcomes_) {
    SCOPED_TRACE(outcome.plan.name);
    CheckTokens(outcome);
    const auto entry = reasons.find(outcome.plan.name);
    std::optional<std::string> reason;
    if (entry != reasons.end()) reason = entry->second;
    CheckEnd(outcome, reason);
    num_in_log += reason.has_value();
    num_aborted[outcome.is_batched] += reason == "abort";
    ++statuses[outcome.status.has_value()
                   ? absl::StatusCodeToString(*outcome.status)
                   : "none: its stream ended"];
  }
  EXPECT_EQ(num_in_log, reasons.size()) << "some are nobody's";
  for (const auto& [status, count] : statuses) {
    std::cout << "  clients with " << status << ": " << count << "\n";
  }
  // Otherwise nothing was tried.
  EXPECT_GT(lines["length"], 0);
  EXPECT_GT(num_aborted[false], 0);
  EXPECT_GT(num_aborted[true], 0);
  EXPECT_GT(statuses["DEADLINE_EXCEEDED"], 0);
}

// Connections that have ended go a little later.
ProcessUsage SoakTest::UsageAtRest(int64_t num_descriptors) {
  ProcessUsage usage;
  int num_same = 0;
  WaitFor("the server is at rest", [&] {
    const ProcessUsage before = std::exchange(usage, server_.Usage());
    num_same = usage.resident_bytes == before.resident_bytes ? num_same + 1 : 0;
    absl::SleepFor(absl::Milliseconds(100));
    return num_same >= 5 && usage.num_descriptors <= num_descriptors;
  });
  std::cout << "  " << usage << "\n";
  return usage;
}

TEST_F(SoakTest, ServerIsAsBefore) {
  // Opens what stays open.
  WaitUntilIdle();
  ExpectAllPagesFree();
  ScrapeOf(server_.metrics_address());
  const ProcessUsage start = UsageAtRest(/*num_descriptors=*/100);
  RunRound();
  const ProcessUsage warm = UsageAtRest(start.num_descriptors);
  const size_t num_warm_up_requests = outcomes_.size();
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) RunRound();
  const ProcessUsage end = UsageAtRest(start.num_descriptors);
  WaitUntilIdle();
  ExpectAllPagesFree();
  ExpectCountersMatch();
  EXPECT_EQ(end.num_threads, start.num_threads);
  EXPECT_LE(end.num_pool_threads, kMaxPoolThreads);
  // A sanitizer keeps freed memory from being used again.
  if (!kSanitized) {
    EXPECT_LE(end.resident_bytes, warm.resident_bytes * (1 + kResidentGrowth));
    EXPECT_LE(end.heap_bytes - warm.heap_bytes,
              kHeapMargin + kHeapBytesPerRequest *
                                static_cast<int64_t>(outcomes_.size() -
                                                     num_warm_up_requests));
  }
  EXPECT_EQ(server_.Stop(), 0);
}

}  // namespace
}  // namespace folio
