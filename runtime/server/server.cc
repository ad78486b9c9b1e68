#include "runtime/server/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/server/host_port.h"

namespace folio {
namespace {

// A prompt of a million tokens takes 5 MB.
constexpr int kMaxRequestBytes = 16 << 20;

// How long the last messages may take to their clients when all requests have
// ended; then calls are cut.
constexpr absl::Duration kFlushTime = absl::Seconds(1);

// Health looks several times in a stall timeout; a shorter one would keep a
// core busy, and take any pause of the machine for a stall.
constexpr absl::Duration kMinStallTimeout = absl::Milliseconds(10);

// How soon a client that has vanished without a word is noticed: a ping after
// so much silence, and so long for its answer.
constexpr absl::Duration kKeepaliveTime = absl::Seconds(60);
constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(20);

absl::Status CheckStallTimeout(absl::Duration stall_timeout) {
  if (stall_timeout >= kMinStallTimeout) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "stall_timeout is ", absl::FormatDuration(stall_timeout), "; it must be ",
      absl::FormatDuration(kMinStallTimeout), " at least"));
}

void SetOptions(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  // Otherwise a second server on the same port would get half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(
      GRPC_ARG_KEEPALIVE_TIME_MS,
      static_cast<int>(absl::ToInt64Milliseconds(kKeepaliveTime)));
  builder.AddChannelArgument(
      GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
      static_cast<int>(absl::ToInt64Milliseconds(kKeepaliveTimeout)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    const ServerOptions& options, Engine* engine, const Tokenizer* tokenizer,
    const Clock* clock) {
  FOLIO_RETURN_IF_ERROR(CheckStallTimeout(options.stall_timeout));
  std::unique_ptr<Server> server(new Server(engine, tokenizer, clock));
  FOLIO_RETURN_IF_ERROR(server->Listen(options.listen));
  server->StartThreads(options.stall_timeout);
  return server;
}

Server::Server(Engine* engine, const Tokenizer* tokenizer, const Clock* clock)
    : engine_(engine),
      generation_(engine, tokenizer, clock, &registry_),
      introspection_(engine, &registry_),
      health_({v1::Generation::service_full_name(),
               v1::Introspection::service_full_name()}) {}

Server::~Server() {
  if (grpc_server_ != nullptr) Shutdown(absl::ZeroDuration());
}

absl::Status Server::Listen(const std::string& listen) {
  FOLIO_ASSIGN_OR_RETURN(const HostPort wanted,
                         ParseHostPort(listen, /*min_port=*/0));
  grpc::EnableDefaultHealthCheckService(false);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&generation_);
  builder.RegisterService(&introspection_);
  builder.RegisterService(&health_);
  SetOptions(builder);
  grpc_server_ = builder.BuildAndStart();
  if (grpc_server_ == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "can't listen on ", listen,
        ": the port is in use or not allowed, or the address is not this "
        "machine's. Give another one, or port 0 for any that is free"));
  }
  address_ = absl::StrCat(wanted.host, ":", port);
  return absl::OkStatus();
}

// Calls may be here already: they wait in the engine's inbox.
void Server::StartThreads(absl::Duration stall_timeout) {
  publisher_.emplace(&outbox_, &registry_, &introspection_);
  engine_thread_.emplace(engine_, &outbox_);
  monitor_.emplace(stall_timeout, &registry_, &*publisher_, &health_);
}

void Server::Shutdown(absl::Duration grace) {
  monitor_.reset();
  registry_.StopAccepting();
  health_.SetServing(false);
  registry_.WaitUntilEmpty(grace);
  engine_thread_.reset();  // Ends what is live, and closes the outbox.
  publisher_.reset();      // Everything is with its reactor now.
  introspection_.Close();
  health_.Close();
  grpc_server_->Shutdown(absl::ToChronoTime(absl::Now() + kFlushTime));
  grpc_server_->Wait();
  grpc_server_.reset();
}

}  // namespace folio
