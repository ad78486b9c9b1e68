#include "tests/runtime/server/whoami_server.h"

#include <glog/logging.h>
#include <grpcpp/client_context.h>
#include <grpcpp/server_builder.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/client/client_channel.h"
#include "runtime/server/server_credentials.h"
#include "runtime/server/status_conversion.h"

namespace folio {
namespace {

namespace health = grpc::health::v1;

constexpr char kTenant[] = "is-tenant";
constexpr char kAuthenticated[] = "is-authenticated";

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  CHECK(value.ok()) << value.status();
  return *std::move(value);
}

std::string ValueOf(const grpc::ClientContext& context, const char* key) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto it = metadata.find(key);
  CHECK(it != metadata.end()) << key;
  return std::string(it->second.data(), it->second.size());
}

}  // namespace

WhoamiServer::Service::Service(const SecurityOptions& options)
    : callers_(OrDie(Callers::Create(options))) {}

grpc::ServerUnaryReactor* WhoamiServer::Service::Check(
    grpc::CallbackServerContext* context, const health::HealthCheckRequest*,
    health::HealthCheckResponse*) {
  const absl::StatusOr<Caller> caller = callers_->Of(*context);
  if (caller.ok()) {
    context->AddTrailingMetadata(kTenant, caller->tenant);
    context->AddTrailingMetadata(kAuthenticated,
                                 caller->authenticated ? "yes" : "no");
  }
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(caller.status()));
  return reactor;
}

WhoamiServer::WhoamiServer(const SecurityOptions& options) : service_(options) {
  grpc::ServerBuilder builder;
  int ports[2] = {};
  const auto credentials = OrDie(MakeServerCredentials(options));
  for (int& port : ports) {
    builder.AddListeningPort("127.0.0.1:0", credentials, &port);
  }
  builder.RegisterService(&service_);
  server_ = builder.BuildAndStart();
  CHECK(server_ != nullptr);
  for (int i = 0; i < 2; ++i) {
    addresses_[i] = absl::StrCat("127.0.0.1:", ports[i]);
  }
}

WhoamiServer::~WhoamiServer() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

absl::StatusOr<Caller> AskWhoami(const std::string& address,
                                 const ClientOptions& options,
                                 const Metadata& metadata) {
  grpc::ChannelArguments arguments;
  // Nobody else's connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  FOLIO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                         MakeClientChannel(address, options, arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::minutes(1));
  for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
  health::HealthCheckResponse response;
  const grpc::Status status =
      health::Health::NewStub(channel)->Check(&context, {}, &response);
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                        status.error_message());
  }
  return Caller{.tenant = ValueOf(context, kTenant),
                .authenticated = ValueOf(context, kAuthenticated) == "yes"};
}

}  // namespace folio
