#include "runtime/client/client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "folio/v1/generation.grpc.pb.h"
#include "folio/v1/introspection.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "runtime/base/status_macros.h"
#include "runtime/client/client_channel.h"

namespace folio {
namespace {

namespace health = grpc::health::v1;

// How long a server may take for an answer that needs no model.
constexpr absl::Duration kHealthTimeout = absl::Seconds(10);

// The numbers of gRPC's codes and Abseil's are the same by design.
absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

// Reads until the stream ends or `on_message` returns false, which cancels it.
// Returns whether it ended by itself.
template <typename Message>
bool ReadAll(grpc::ClientContext& context, grpc::ClientReader<Message>& reader,
             absl::FunctionRef<bool(const Message&)> on_message) {
  Message message;
  while (reader.Read(&message)) {
    if (on_message(message)) continue;
    context.TryCancel();
    while (reader.Read(&message)) {
      // What was on its way; gRPC wants it to be read before the status.
    }
    return false;
  }
  return true;
}

// gRPC does not tell why a handshake failed.
std::string WhatTlsNeeds(const ClientOptions& options) {
  if (options.tls_ca.empty()) return "that it serves without TLS";
  return absl::StrCat(
      "that its certificate is for this address and signed by '",
      options.tls_ca, "'",
      options.tls_cert.empty()
          ? ", and whether it wants one of the client"
          : absl::StrCat(", and that it accepts '", options.tls_cert, "'"));
}

void SetDeadline(absl::Time deadline, grpc::ClientContext& context) {
  if (deadline != absl::InfiniteFuture()) {
    context.set_deadline(absl::ToChronoTime(deadline));
  }
}

}  // namespace

struct Client::Stubs {
  explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
      : generation(v1::Generation::NewStub(channel)),
        introspection(v1::Introspection::NewStub(channel)),
        health(health::Health::NewStub(channel)) {}

  std::unique_ptr<v1::Generation::Stub> generation;
  std::unique_ptr<v1::Introspection::Stub> introspection;
  std::unique_ptr<health::Health::Stub> health;
};

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(
    const std::string& address, absl::Duration timeout,
    const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  // A prompt with logprobs can be larger than gRPC's 4 MiB.
  arguments.SetMaxReceiveMessageSize(-1);
  FOLIO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                         MakeClientChannel(address, options, arguments));
  const absl::Time deadline = absl::Now() + timeout;
  if (!channel->WaitForConnected(absl::ToChronoTime(deadline))) {
    return absl::UnavailableError(absl::StrCat(
        "no server answered at ", address, " within ",
        absl::FormatDuration(timeout),
        "; check the address, that `folio serve` is running there, and ",
        WhatTlsNeeds(options)));
  }
  return std::unique_ptr<Client>(new Client(std::make_unique<Stubs>(channel)));
}

Client::Client(std::unique_ptr<Stubs> stubs) : stubs_(std::move(stubs)) {}

Client::~Client() = default;

absl::Status Client::Generate(
    const v1::GenerateRequest& request,
    absl::FunctionRef<bool(const v1::GenerateResponse&)> on_response,
    absl::Time deadline) {
  grpc::ClientContext context;
  SetDeadline(deadline, context);
  const auto reader = stubs_->generation->Generate(&context, request);
  const bool ended = ReadAll(context, *reader, on_response);
  const grpc::Status status = reader->Finish();
  return ended ? FromGrpc(status)
               : absl::CancelledError("cancelled by the caller");
}

absl::StatusOr<v1::BatchReport> Client::GetMemoryReport(
    absl::Duration timeout) {
  grpc::ClientContext context;
  SetDeadline(absl::Now() + timeout, context);
  v1::BatchReport report;
  const grpc::Status status =
      stubs_->introspection->GetMemoryReport(&context, {}, &report);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::DeadlineExceededError(absl::StrCat(
        "the server gave no memory report within ",
        absl::FormatDuration(timeout),
        "; it answers between two steps, so either a step takes that long, "
        "and it is worth another try, or the server hangs"));
  }
  if (!status.ok()) return FromGrpc(status);
  return report;
}

absl::Status Client::WatchBatches(
    absl::FunctionRef<void()> on_start,
    absl::FunctionRef<bool(const v1::BatchReport&)> on_report) {
  grpc::ClientContext context;
  const auto reader = stubs_->introspection->WatchBatches(&context, {});
  reader->WaitForInitialMetadata();  // The server sends it when it watches.
  on_start();
  const bool ended = ReadAll(context, *reader, on_report);
  const grpc::Status status = reader->Finish();
  return ended ? FromGrpc(status) : absl::OkStatus();
}

absl::Status Client::CheckHealth() {
  grpc::ClientContext context;
  SetDeadline(absl::Now() + kHealthTimeout, context);
  health::HealthCheckResponse response;
  const grpc::Status status = stubs_->health->Check(&context, {}, &response);
  if (!status.ok()) return FromGrpc(status);
  if (response.status() != health::HealthCheckResponse::SERVING) {
    return absl::UnavailableError(absl::StrCat(
        "the server says that it is ",
        health::HealthCheckResponse::ServingStatus_Name(response.status())));
  }
  return absl::OkStatus();
}

}  // namespace folio
