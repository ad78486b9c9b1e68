// What the service costs beside bare gRPC: messages a second of 64 streams of
// one token a message, from the server on a model that computes nothing, and
// from a reactor that writes the same messages one after the other; and how
// long a token takes from the engine's event to its client.

#include <glog/logging.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/server_callback.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/bench_model.h"
#include "folio/v1/generation.grpc.pb.h"
#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/engine.h"
#include "runtime/model/model.h"
#include "runtime/server/server.h"
#include "runtime/tokenizer/byte_tokenizer.h"

namespace folio {
namespace {

constexpr int kVocabSize = 128;
constexpr int32_t kContext = 1 << 15;

// A token says in which step it was made, up to a multiple of this: printable
// characters from '!' on.
constexpr int64_t kNumMarks = 64;
constexpr TokenId kFirstMark = '!';

// The engine's clock, which notes when the events of each step were ready
// (StepOutput::time): that is what the fourth reading after a forward pass
// is for. One thread at a time but for Now and TimeOf.
class EventClock final : public Clock {
 public:
  absl::Time Now() const override {
    const absl::Time now = clock_.Now();
    // (The edge reads it, too.)
    if (std::this_thread::get_id() == engine_ && ++num_readings_ == 4) {
      times_[step_ % kNumMarks] = absl::ToUnixNanos(now);
    }
    return now;
  }

  // The calling thread is the engine's. (Between two forward passes it reads
  // the clock seven times, or more where it had nothing to compute.)
  void NoteForward(int64_t step) {
    CHECK(step_ == 0 || num_readings_ >= 7) << num_readings_;
    engine_ = std::this_thread::get_id();
    step_ = step;
    num_readings_ = 0;
  }

  // Of the last step with this mark.
  absl::Time TimeOf(int64_t mark) const {
    return absl::FromUnixNanos(times_[mark]);
  }

 private:
  const SystemClock clock_;
  std::atomic<std::thread::id> engine_;
  int64_t step_ = 0;
  mutable int num_readings_ = 0;
  mutable std::array<std::atomic<int64_t>, kNumMarks> times_ = {};
};

// The tokens that were made and have not reached their clients yet.
class TokensUnderway {
 public:
  void Made(int64_t count) {
    std::lock_guard lock(mutex_);
    count_ += count;
  }

  void Arrived(int64_t count) {
    std::lock_guard lock(mutex_);
    count_ -= count;
    if (count_ <= limit_) is_low_.notify_one();
  }

  // One thread.
  void WaitUntilAtMost(int64_t limit) {
    std::unique_lock lock(mutex_);
    limit_ = limit;
    CHECK(is_low_.wait_for(lock, std::chrono::seconds(10),
                           [this] { return count_ <= limit_; }))
        << count_ << " tokens do not arrive";
  }

 private:
  std::mutex mutex_;
  std::condition_variable is_low_;
  int64_t count_ = 0;
  int64_t limit_ = 0;
};

// When a step begins: no sooner than `period` after the one before, and when no
// more than `underway` tokens are.
struct Pace {
  absl::Duration period;
  int64_t underway = std::numeric_limits<int64_t>::max();
};

// Computes nothing, at its pace. Its tokens are the steps' marks.
class PacedModel final : public Model {
 public:
  // `clock` and `underway` must outlive it.
  PacedModel(const ModelLimits& limits, Pace pace, EventClock* clock,
             TokensUnderway* underway)
      : info_({.name = "paced",
               .architecture = "Paced",
               .vocab_size = kVocabSize,
               .context_length = kContext,
               .kv_shape = {.num_layers = 1,
                            .num_kv_heads = 1,
                            .head_dim = 1,
                            .bytes_per_element = sizeof(float)},
               .bos_token = std::nullopt}),
        pace_(pace),
        clock_(clock),
        underway_(underway),
        logits_(limits.max_logits_rows, {0, kVocabSize}) {}

  const ModelInfo& info() const override { return info_; }

  void Forward(const StepInput& /*input*/, KvStorage& /*storage*/) override {
    const absl::Time now = absl::Now();
    absl::SleepFor(next_ - now);
    next_ = std::max(next_, now) + pace_.period;
    underway_->WaitUntilAtMost(pace_.underway);
    clock_->NoteForward(++step_);
  }

  const ColumnBlocks& Logits(int32_t /*first*/, int32_t count) override {
    float* const data = logits_.block_data(0);
    std::fill_n(data, count * kVocabSize, 0.0f);
    const TokenId token = kFirstMark + static_cast<TokenId>(step_ % kNumMarks);
    for (int32_t i = 0; i < count; ++i) data[i * kVocabSize + token] = 1;
    underway_->Made(count);
    return logits_;
  }

 private:
  const ModelInfo info_;
  const Pace pace_;
  EventClock* const clock_;
  TokensUnderway* const underway_;
  int64_t step_ = 0;
  absl::Time next_ = absl::InfinitePast();
  ColumnBlocks logits_;
};

// The same messages without anything behind them.
class BareReactor final
    : public grpc::ServerWriteReactor<v1::GenerateResponse> {
 public:
  explicit BareReactor(const v1::GenerateRequest& request)
      : num_left_(request.max_tokens()) {
    response_.set_request_id("request-1000");
    response_.add_token_ids(kFirstMark);
    response_.set_text("!");
    WriteNext();
  }

  void OnWriteDone(bool /*ok*/) override { WriteNext(); }
  void OnDone() override { delete this; }

 private:
  void WriteNext() {
    if (--num_left_ > 0) {
      StartWrite(&response_);
    } else {
      StartWriteAndFinish(&response_, {}, grpc::Status::OK);
    }
  }

  int32_t num_left_;
  v1::GenerateResponse response_;
};

class BareService final : public v1::Generation::CallbackService {
 public:
  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* /*context*/,
      const v1::GenerateRequest* request) override {
    return new BareReactor(*request);
  }
};

class Countdown {
 public:
  explicit Countdown(int count) : count_(count) {}

  // Nobody may touch the countdown after the last call but Wait.
  void Decrement() {
    std::lock_guard lock(mutex_);
    if (--count_ == 0) is_zero_.notify_one();
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    is_zero_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable is_zero_;
  int count_;
};

// What the model has for its clients' eyes.
struct Watched {
  EventClock clock;
  TokensUnderway underway;
};

// One client, which counts.
class Reader final : public grpc::ClientReadReactor<v1::GenerateResponse> {
 public:
  // With `watched`, takes each message's latency.
  Reader(int32_t max_tokens, Watched* watched, Countdown* open)
      : watched_(watched), open_(open) {
    request_.mutable_token_ids()->add_ids('a');
    request_.set_max_tokens(max_tokens);
    if (watched != nullptr) latencies_us.reserve(max_tokens);
  }

  void Start(v1::Generation::Stub& stub) {
    stub.async()->Generate(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    ++num_messages;
    num_tokens += response_.token_ids_size();
    if (watched_ != nullptr && response_.token_ids_size() > 0) {
      const EventClock& clock = watched_->clock;
      const absl::Time ready =
          clock.TimeOf(response_.token_ids(0) - kFirstMark);
      latencies_us.push_back(absl::ToDoubleMicroseconds(clock.Now() - ready));
      watched_->underway.Arrived(response_.token_ids_size());
    }
    StartRead(&response_);
  }

  void OnDone(const grpc::Status& ended) override {
    status = ended;
    open_->Decrement();
  }

  int64_t num_messages = 0;
  int64_t num_tokens = 0;
  std::vector<double> latencies_us;  // Of each message's first token.
  grpc::Status status;

 private:
  Watched* const watched_;
  Countdown* const open_;
  grpc::ClientContext context_;
  v1::GenerateRequest request_;
  v1::GenerateResponse response_;
};

struct Flags {
  int32_t streams = 64;
  int32_t messages = 100'000;  // Of all streams.
  int32_t rounds = 7;
  std::vector<int64_t> underway = {32, 48, 64};
  std::vector<double> periods_ms = {1, 2, 4};

  std::vector<Pace> paces() const {
    std::vector<Pace> paces;
    for (const int64_t tokens : underway) paces.push_back({.underway = tokens});
    for (const double period : periods_ms) {
      paces.push_back({.period = absl::Milliseconds(period)});
    }
    return paces;
  }
};

struct Row {
  double messages_per_second = 0;
  double cpu_us_per_message = 0;
  double messages_per_token = 0;
  double median_us = 0;  // 0: not measured.
  double p99_us = 0;
};

// Of all threads of this process.
absl::Duration CpuTime() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

// A connection of its own.
std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto channel = grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), arguments);
  channel->WaitForConnected(absl::ToChronoTime(absl::Now() + absl::Seconds(5)));
  return channel;
}

// All streams at once, over one connection.
absl::StatusOr<Row> Measure(const std::string& address, const Flags& flags,
                            Watched* watched) {
  const auto channel = Connect(address);
  const auto stub = v1::Generation::NewStub(channel);
  Countdown open(flags.streams);
  std::vector<std::unique_ptr<Reader>> readers;
  for (int32_t i = 0; i < flags.streams; ++i) {
    readers.push_back(std::make_unique<Reader>(flags.messages / flags.streams,
                                               watched, &open));
  }
  const absl::Time start = absl::Now();
  const absl::Duration cpu_start = CpuTime();
  for (const auto& reader : readers) reader->Start(*stub);
  open.Wait();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  const absl::Duration cpu_time = CpuTime() - cpu_start;
  int64_t messages = 0;
  int64_t tokens = 0;
  std::vector<double> latencies = {0};
  for (const auto& reader : readers) {
    if (!reader->status.ok()) {
      return absl::InternalError(reader->status.error_message());
    }
    messages += reader->num_messages;
    tokens += reader->num_tokens;
    latencies.insert(latencies.end(), reader->latencies_us.begin(),
                     reader->latencies_us.end());
  }
  std::ranges::sort(latencies);
  return Row{
      .messages_per_second = messages / seconds,
      .cpu_us_per_message = absl::ToDoubleMicroseconds(cpu_time) / messages,
      .messages_per_token = static_cast<double>(messages) / tokens,
      .median_us = latencies[latencies.size() / 2],
      .p99_us = latencies[latencies.size() * 99 / 100]};
}

absl::StatusOr<Row> MeasureBare(const Flags& flags) {
  BareService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  return Measure(absl::StrCat("127.0.0.1:", port), flags, nullptr);
}

absl::StatusOr<Row> MeasureServer(const Flags& flags, const Pace& pace) {
  EngineOptions options;
  options.kv_pool_bytes = 16 << 20;
  options.scheduler.max_batch_sequences = flags.streams;
  const ByteTokenizer tokenizer(kVocabSize);
  Watched watched;
  SerialExecutor executor;
  FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                         Engine::Create(options,
                                        std::make_unique<PacedModel>(
                                            options.model_limits(), pace,
                                            &watched.clock, &watched.underway),
                                        &tokenizer, &watched.clock, &executor));
  FOLIO_ASSIGN_OR_RETURN(
      const std::unique_ptr<Server> server,
      Server::Start({.listen = "127.0.0.1:0",
                     .telemetry = {.metrics_listen = "127.0.0.1:0"}},
                    engine.get(), &tokenizer, &watched.clock));
  return Measure(server->address(), flags, &watched);
}

double MedianOf(const std::vector<Row>& rows, double Row::*value) {
  std::vector<double> values;
  for (const Row& row : rows) values.push_back(row.*value);
  return Median(std::move(values));
}

std::string NameOf(const Pace& pace) {
  return pace.period > absl::ZeroDuration()
             ? absl::StrCat("a step every ", absl::FormatDuration(pace.period))
             : absl::StrCat(pace.underway, " tokens underway");
}

void Print(const std::string& name, const std::vector<Row>& rows,
           double bare_rate) {
  const double rate = MedianOf(rows, &Row::messages_per_second);
  std::printf("%-20s %10.0f  %6.0f%%  %14.1f  %14.3f", name.c_str(), rate,
              100 * rate / bare_rate, MedianOf(rows, &Row::cpu_us_per_message),
              MedianOf(rows, &Row::messages_per_token));
  const double median_us = MedianOf(rows, &Row::median_us);
  if (median_us > 0) {
    std::printf("  %11.3f  %7.3f", median_us / 1e3,
                MedianOf(rows, &Row::p99_us) / 1e3);
  }
  std::printf("\n");
}

absl::Status Run(const Flags& flags) {
  const std::vector<Pace> paces = flags.paces();
  std::vector<Row> bare;
  std::vector<std::vector<Row>> served(paces.size());
  for (int32_t round = 0; round < flags.rounds; ++round) {
    for (size_t i = 0; i < paces.size(); ++i) {
      FOLIO_ASSIGN_OR_RETURN(bare.emplace_back(), MeasureBare(flags));
      FOLIO_ASSIGN_OR_RETURN(served[i].emplace_back(),
                             MeasureServer(flags, paces[i]));
    }
  }
  std::printf(
      "%d streams on one connection, server and clients in one process, "
      "metrics on;\nmedians of %d rounds in turns. Latency: from a step's "
      "events to their messages in\nthe client's callbacks (of tokens that are "
      "gathered, the first). \"N tokens\nunderway\": a step begins when so "
      "many of those made before have not arrived.\n\n"
      "                     messages/s  of bare  CPU us/message  "
      "messages/token  latency p50  p99, ms\n",
      flags.streams, flags.rounds);
  const double bare_rate = MedianOf(bare, &Row::messages_per_second);
  Print("bare", bare, bare_rate);
  for (size_t i = 0; i < paces.size(); ++i) {
    Print(NameOf(paces[i]), served[i], bare_rate);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace folio

int main(int argc, char** argv) {
  folio::Flags flags;
  CLI::App app("Compares the service with bare gRPC.");
  app.add_option("--streams", flags.streams)
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--messages", flags.messages, "Of all streams, in each round")
      ->capture_default_str()
      ->check(CLI::Range(1000, 1'000'000));
  app.add_option("--rounds", flags.rounds)
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  app.add_option("--underway", flags.underway,
                 "A step begins when so many tokens have not arrived")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->delimiter(',');
  app.add_option("--periods-ms", flags.periods_ms,
                 "A step begins so long after the one before")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->delimiter(',');
  return folio::RunBenchmark(app, argc, argv,
                             [&flags] { return folio::Run(flags); });
}
