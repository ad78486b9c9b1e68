#include "bench/load/folio_target.h"

#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/load/report_sample.h"
#include "folio/v1/generation.grpc.pb.h"
#include "folio/v1/introspection.grpc.pb.h"
#include "runtime/base/status_macros.h"
#include "runtime/client/client_channel.h"
#include "runtime/server/duration_conversion.h"

namespace folio {
namespace {

// One connection is one transport, whose work gRPC does on one thread at a
// time.
constexpr size_t kNumChannels = 4;
constexpr absl::Duration kDescribeTimeout = absl::Seconds(5);
// What reports of the last steps, which come over a connection of their own,
// may take longer than the last token.
constexpr absl::Duration kLastReports = absl::Milliseconds(200);

// The numbers of gRPC's codes and Abseil's are the same by design.
absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

// The status of a call that is made with a context for it.
template <typename Call>
absl::Status Ask(absl::Time deadline, const Call& call) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(deadline));
  return FromGrpc(call(context));
}

v1::GenerateRequest ToProto(TargetRequest request) {
  v1::GenerateRequest proto;
  proto.set_request_id(std::move(request.name));
  if (auto* text = std::get_if<std::string>(&request.prompt)) {
    proto.set_text(std::move(*text));
  } else {
    const auto& tokens = std::get<std::vector<TokenId>>(request.prompt);
    proto.mutable_token_ids()->mutable_ids()->Add(tokens.begin(), tokens.end());
  }
  proto.set_max_tokens(request.max_tokens);
  proto.set_ignore_eos(true);
  proto.set_n(request.n);
  proto.set_priority(request.priority);
  proto.set_tenant(std::move(request.tenant));
  return proto;
}

class FolioCall final : public TargetCall,
                        public grpc::ClientReadReactor<v1::GenerateResponse> {
 public:
  FolioCall(TargetRequest request, TargetListener* listener,
            v1::Generation::Stub& stub)
      : listener_(listener),
        read_delay_(request.read_delay),
        deadline_(request.deadline) {
    if (deadline_ != absl::InfiniteFuture()) {
      context_.set_deadline(absl::ToChronoTime(deadline_));
    }
    request_ = ToProto(std::move(request));
    stub.async()->Generate(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void Cancel() override {
    context_.TryCancel();
    std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    if (alarm_ != nullptr) alarm_->Cancel();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (response_.token_ids_size() > 0 || !response_.text().empty()) {
      listener_->OnOutput(
          {.sample = response_.sample_index(),
           .num_tokens = response_.token_ids_size(),
           .tokens = {response_.token_ids().data(),
                      static_cast<size_t>(response_.token_ids_size())},
           .text = response_.text()});
    }
    if (response_.has_usage()) {
      const v1::Usage& usage = response_.usage();
      end_.prompt_tokens = usage.prompt_tokens();
      end_.output_tokens = usage.generated_tokens();
      end_.cached_tokens = usage.cached_tokens();
      end_.queue_duration = ToDuration(usage.queue_duration());
    }
    if (read_delay_ <= absl::ZeroDuration()) {
      StartRead(&response_);
      return;
    }
    ReadLater();
  }

  void OnDone(const grpc::Status& status) override {
    end_.status = FromGrpc(status);
    listener_->OnEnd(std::move(end_));  // The call may be gone then.
  }

 private:
  // (The alarm before may still be in its callback, which one that is set again
  // must not be.)
  void ReadLater() {
    AddHold();  // Keeps OnDone away while no read is open.
    std::lock_guard lock(mutex_);
    alarm_ = std::make_unique<grpc::Alarm>();
    const absl::Time now = absl::Now();
    const absl::Time due =
        is_cancelled_ ? now : std::min(now + read_delay_, deadline_);
    alarm_->Set(absl::ToChronoTime(due), [this](bool /*is_due*/) {
      StartRead(&response_);
      RemoveHold();
    });
  }

  TargetListener* const listener_;
  const absl::Duration read_delay_;
  const absl::Time deadline_;
  grpc::ClientContext context_;
  v1::GenerateRequest request_;
  v1::GenerateResponse response_;
  TargetEnd end_;
  std::mutex mutex_;
  bool is_cancelled_ = false;           // Guarded by mutex_.
  std::unique_ptr<grpc::Alarm> alarm_;  // Guarded by mutex_.
};

class FolioTarget final : public Target {
 public:
  using Channels = std::array<std::shared_ptr<grpc::Channel>, kNumChannels>;

  FolioTarget(std::string address, Channels channels)
      : address_(std::move(address)), channels_(std::move(channels)) {
    for (const auto& channel : channels_) {
      stubs_.push_back(v1::Generation::NewStub(channel));
    }
    introspection_ = v1::Introspection::NewStub(channels_[0]);
  }

  ~FolioTarget() override { StopWatching(); }

  absl::StatusOr<TargetInfo> Describe() override;

  std::unique_ptr<TargetCall> Start(TargetRequest request,
                                    TargetListener* listener) override {
    return std::make_unique<FolioCall>(std::move(request), listener,
                                       *stubs_[next_++ % kNumChannels]);
  }

  bool WatchBatches(std::function<void(const BatchSample&)> on_batch) override;

  void StopWatching() override {
    if (!watcher_.joinable()) return;
    absl::SleepFor(kLastReports);
    watch_context_->TryCancel();
    watcher_.join();
  }

 private:
  absl::Status Explain(const absl::Status& status) const;

  const std::string address_;
  const Channels channels_;
  std::vector<std::unique_ptr<v1::Generation::Stub>> stubs_;
  std::unique_ptr<v1::Introspection::Stub> introspection_;
  std::atomic<size_t> next_ = 0;
  std::unique_ptr<grpc::ClientContext> watch_context_;
  std::thread watcher_;
};

absl::StatusOr<TargetInfo> FolioTarget::Describe() {
  const absl::Time deadline = absl::Now() + kDescribeTimeout;
  if (!channels_[0]->WaitForConnected(absl::ToChronoTime(deadline))) {
    return Explain(absl::UnavailableError("no connection"));
  }
  v1::ModelInfo model;
  FOLIO_RETURN_IF_ERROR(
      Explain(Ask(deadline, [&](grpc::ClientContext& context) {
        return introspection_->GetModelInfo(&context, {}, &model);
      })));
  v1::ServerInfo server;
  FOLIO_RETURN_IF_ERROR(
      Explain(Ask(deadline, [&](grpc::ClientContext& context) {
        return introspection_->GetServerInfo(&context, {}, &server);
      })));
  return TargetInfo{.server = absl::StrCat("Folio ", server.version()),
                    .model = model.name(),
                    .vocab_size = model.vocab_size(),
                    .context_length = model.context_length()};
}

// A connection that is not there is nobody's fault but the address's.
absl::Status FolioTarget::Explain(const absl::Status& status) const {
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) {
    return status;
  }
  return absl::UnavailableError(absl::StrCat(
      "folio://", address_, " does not answer (", std::string(status.message()),
      "); check the address, and that `folio serve` is running "
      "there"));
}

bool FolioTarget::WatchBatches(
    std::function<void(const BatchSample&)> on_batch) {
  watch_context_ = std::make_unique<grpc::ClientContext>();
  auto stream = introspection_->WatchBatches(watch_context_.get(), {});
  stream->WaitForInitialMetadata();  // The server sends it when it watches.
  watcher_ =
      std::thread([stream = std::move(stream), on_batch = std::move(on_batch)] {
        v1::BatchReport report;
        while (stream->Read(&report)) on_batch(SampleOf(report));
        stream->Finish();
      });
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Target>> OpenFolioTarget(
    const std::string& address, const ClientOptions& options) {
  FolioTarget::Channels channels;
  for (std::shared_ptr<grpc::Channel>& channel : channels) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    FOLIO_ASSIGN_OR_RETURN(channel,
                           MakeClientChannel(address, options, arguments));
  }
  return std::make_unique<FolioTarget>(address, std::move(channels));
}

}  // namespace folio
