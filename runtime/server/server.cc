#include "runtime/server/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/server/host_port.h"
#include "runtime/server/quoted.h"
#include "runtime/server/server_credentials.h"
#include "runtime/server/unreadable_requests.h"

namespace folio {
namespace {

// How long the last messages may take to their clients when all requests have
// ended; then calls are cut.
constexpr absl::Duration kFlushTime = absl::Seconds(1);

// Health looks several times in a stall timeout; a shorter one would keep a
// core busy, and take any pause of the machine for a stall.
constexpr absl::Duration kMinStallTimeout = absl::Milliseconds(10);

// How soon a client that has vanished without a word is noticed: a ping after
// so much silence, and so long for its answer. Clients may ping as often.
constexpr absl::Duration kKeepaliveTime = absl::Seconds(60);
constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(20);
constexpr absl::Duration kMinPingInterval = absl::Seconds(10);

// Longer ones would overflow some clock.
constexpr absl::Duration kMaxGrace = absl::Hours(24 * 365);

constexpr int32_t kMinMessageBytes = 1024;
constexpr std::string_view kUnix = "unix:";

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

void SetOptions(const ServerOptions& options, grpc::ServerBuilder& builder) {
  std::vector<
      std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>
      interceptors;
  interceptors.push_back(MakeUnreadableRequestInterceptor());
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  // A compressed message is unpacked before its size is looked at: 256 KB may
  // become 256 MB.
  for (const grpc_compression_algorithm algorithm :
       {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  // Otherwise a second server on the same port would get half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             options.max_streams_per_connection);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             Milliseconds(kKeepaliveTime));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             Milliseconds(kKeepaliveTimeout));
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      Milliseconds(kMinPingInterval));
}

absl::Status CannotListen(std::string_view address) {
  if (address.starts_with(kUnix)) {
    return absl::UnavailableError(absl::StrCat(
        "can't listen on ", std::string(address),
        ": its folder has to exist and to be writable, the path to be shorter "
        "than 108 bytes, and no other server may listen on it"));
  }
  return absl::UnavailableError(absl::StrCat(
      "can't listen on ", std::string(address),
      ": the port is in use or not allowed, or the address is not this "
      "machine's. Give another one, or port 0 for any that is free"));
}

// Whether a process listens on a unix socket. (gRPC would take it over.)
bool IsTaken(const std::string& path) {
  sockaddr_un address = {.sun_family = AF_UNIX};
  if (path.size() >= sizeof(address.sun_path)) return false;
  path.copy(address.sun_path, path.size());
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  const bool taken = connect(probe, reinterpret_cast<sockaddr*>(&address),
                             sizeof(address)) == 0;
  close(probe);
  return taken;
}

// As many as all tokens of a prompt can have, and some more: a tokenizer may
// drop a part of a text.
size_t MaxTextBytes(const Tokenizer& tokenizer, int32_t max_prompt_tokens) {
  constexpr size_t kSlack = 8;
  size_t longest = 1;
  std::string bytes;
  for (TokenId token = 0; token < tokenizer.info().vocab_size; ++token) {
    bytes.clear();
    tokenizer.AppendBytes(token, bytes);
    longest = std::max(longest, bytes.size());
  }
  return kSlack * longest * static_cast<size_t>(max_prompt_tokens);
}

absl::Status CheckAdminAddress(const std::string& address) {
  if (address.empty() || address.starts_with("unix:/")) {
    return absl::OkStatus();
  }
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address, 0);
  if (parsed.ok() && IsLoopback(parsed->host)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the admin address is ", Quoted(address),
      "; whoever reaches it may end the server, so it must be a loopback "
      "address (127.0.0.1:PORT) or a unix socket (unix:/PATH)"));
}

}  // namespace

absl::Status ServerOptions::Validate() const {
  if (stall_timeout < kMinStallTimeout) {
    return absl::InvalidArgumentError(absl::StrCat(
        "stall_timeout is ", absl::FormatDuration(stall_timeout),
        "; it must be ", absl::FormatDuration(kMinStallTimeout), " at least"));
  }
  if (max_message_bytes < kMinMessageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_message_bytes is ", max_message_bytes,
                     "; it must be ", kMinMessageBytes, " at least"));
  }
  if (max_streams_per_connection < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_streams_per_connection is ",
                     max_streams_per_connection, "; it must be 1 at least"));
  }
  FOLIO_ASSIGN_OR_RETURN(const HostPort parsed,
                         ParseHostPort(listen, /*min_port=*/0));
  FOLIO_RETURN_IF_ERROR(CheckSecurity(security, parsed.host));
  return CheckAdminAddress(admin_listen);
}

absl::StatusOr<std::unique_ptr<Server>> Server::Listen(ServerOptions options) {
  FOLIO_RETURN_IF_ERROR(options.Validate());
  FOLIO_ASSIGN_OR_RETURN(std::unique_ptr<Callers> callers,
                         Callers::Create(options.security));
  std::unique_ptr<Server> server(
      new Server(std::move(options), std::move(callers)));
  grpc::EnableDefaultHealthCheckService(false);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  FOLIO_RETURN_IF_ERROR(server->ListenForClients());
  FOLIO_RETURN_IF_ERROR(server->ListenForAdmin());
  return server;
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    ServerOptions options, Engine* engine, const Tokenizer* tokenizer,
    const Clock* clock) {
  FOLIO_ASSIGN_OR_RETURN(std::unique_ptr<Server> server,
                         Listen(std::move(options)));
  FOLIO_RETURN_IF_ERROR(server->Serve(engine, tokenizer, clock));
  return server;
}

Server::Server(ServerOptions options, std::unique_ptr<Callers> callers)
    : options_(std::move(options)),
      callers_(std::move(callers)),
      generation_(&slot_, callers_.get(), &registry_,
                  options_.telemetry.log_prompts),
      introspection_(&slot_, callers_.get(), &registry_,
                     options_.max_message_bytes),
      admin_(&slot_, &registry_,
             [this](std::optional<absl::Duration> timeout) {
               StopAccepting();
               if (options_.on_drain) options_.on_drain(timeout);
             }),
      health_({v1::Generation::service_full_name(),
               v1::Introspection::service_full_name()}) {}

Server::~Server() {
  if (grpc_server_ != nullptr) Shutdown(absl::ZeroDuration());
}

absl::Status Server::ListenForClients() {
  FOLIO_ASSIGN_OR_RETURN(const HostPort wanted,
                         ParseHostPort(options_.listen, /*min_port=*/0));
  FOLIO_ASSIGN_OR_RETURN(
      const std::shared_ptr<grpc::ServerCredentials> credentials,
      MakeServerCredentials(options_.security));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options_.listen, credentials, &port);
  builder.RegisterService(&generation_);
  builder.RegisterService(&introspection_);
  builder.RegisterService(&health_);
  SetOptions(options_, builder);
  grpc_server_ = builder.BuildAndStart();
  if (grpc_server_ == nullptr) return CannotListen(options_.listen);
  address_ = absl::StrCat(wanted.host, ":", port);
  return absl::OkStatus();
}

absl::Status Server::ListenForAdmin() {
  const std::string& listen = options_.admin_listen;
  if (listen.empty()) return absl::OkStatus();
  const bool is_unix = listen.starts_with(kUnix);
  if (is_unix && IsTaken(listen.substr(kUnix.size()))) {
    return CannotListen(listen);
  }
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&admin_);
  SetOptions(options_, builder);
  admin_server_ = builder.BuildAndStart();
  if (admin_server_ == nullptr) return CannotListen(listen);
  admin_address_ = listen;
  if (is_unix) return absl::OkStatus();
  FOLIO_ASSIGN_OR_RETURN(const HostPort wanted,
                         ParseHostPort(listen, /*min_port=*/0));
  admin_address_ = absl::StrCat(wanted.host, ":", port);
  return absl::OkStatus();
}

absl::Status Server::Serve(Engine* engine, const Tokenizer* tokenizer,
                           const Clock* clock) {
  FOLIO_ASSIGN_OR_RETURN(telemetry_,
                         Telemetry::Create(options_.telemetry, *engine));
  publisher_.emplace(&outbox_, &registry_, &introspection_, telemetry_.get());
  engine_thread_.emplace(engine, &outbox_);
  slot_.Set({.engine = engine,
             .tokenizer = tokenizer,
             .clock = clock,
             .telemetry = telemetry_.get(),
             .max_text_bytes = MaxTextBytes(
                 *tokenizer, engine->request_limits().MaxPromptTokens())});
  monitor_.emplace(options_.stall_timeout, &registry_, &*publisher_, &health_);
  health_.SetServing(true);
  return absl::OkStatus();
}

void Server::StopAccepting() {
  registry_.StopAccepting();
  health_.StopServing();
}

void Server::Shutdown(absl::Duration grace) {
  StopAccepting();
  monitor_.reset();
  registry_.WaitUntilEmpty(std::min(grace, kMaxGrace));
  engine_thread_.reset();  // Ends what is live, and closes the outbox.
  publisher_.reset();      // Everything is with its sink now.
  generation_.Close();
  introspection_.Close();
  health_.Close();
  const auto deadline = absl::ToChronoTime(absl::Now() + kFlushTime);
  for (auto* const server : {&grpc_server_, &admin_server_}) {
    if (*server == nullptr) continue;
    (*server)->Shutdown(deadline);
    (*server)->Wait();
    server->reset();
  }
}

}  // namespace folio
