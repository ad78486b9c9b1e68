// An engine on the network.

#ifndef RUNTIME_SERVER_SERVER_H_
#define RUNTIME_SERVER_SERVER_H_

#include <grpcpp/server.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/engine_thread.h"
#include "runtime/engine/outbox.h"
#include "runtime/server/admin_service.h"
#include "runtime/server/backend.h"
#include "runtime/server/caller.h"
#include "runtime/server/generation_service.h"
#include "runtime/server/health_service.h"
#include "runtime/server/introspection_service.h"
#include "runtime/server/progress_monitor.h"
#include "runtime/server/publisher.h"
#include "runtime/server/request_registry.h"
#include "runtime/server/security_options.h"
#include "runtime/server/telemetry.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {

struct ServerOptions {
  std::string listen = "127.0.0.1:50051";  // ADDR:PORT; port 0: any free one.
  // Where Admin is served: ADDR:PORT with a loopback address, or unix:PATH.
  // Empty: nowhere.
  std::string admin_listen;
  SecurityOptions security;  // Of `listen`.
  TelemetryOptions telemetry;
  // Health says NOT_SERVING when requests are live and no step was made for so
  // long. At least 10 ms.
  absl::Duration stall_timeout = absl::Seconds(30);
  // Of one request. (A prompt of a million tokens takes 5 MB.)
  int32_t max_message_bytes = 16 << 20;
  // Calls that one connection may have at once; more wait in the client.
  int32_t max_streams_per_connection = 1024;
  // Admin.Drain was called: requests are refused from now on. Whoever owns the
  // server shuts it down then, within the timeout if there is one.
  AdminService::Drainer on_drain;

  absl::Status Validate() const;
};

// Serves folio.v1.Generation, folio.v1.Introspection, health and reflection,
// and folio.v1.Admin where that is asked for.
//
// Events flow one way: EngineThread -> Outbox -> Publisher -> sinks. Locks are
// held for moments only, and never two of them at once.
class Server {
 public:
  // Listens, and says NOT_SERVING: calls are refused with UNAVAILABLE until
  // Serve. INVALID_ARGUMENT names what is wrong with the options or with a file
  // that they name; UNAVAILABLE, an address that can't be listened on.
  static absl::StatusOr<std::unique_ptr<Server>> Listen(ServerOptions options);

  // Serves from the time it returns OK. All must outlive the server; `clock` is
  // the engine's, and the engine's loop belongs to the server from now on.
  // Errors are those of Telemetry::Create. Call it once.
  absl::Status Serve(Engine* engine, const Tokenizer* tokenizer,
                     const Clock* clock);

  // Both, for an engine that is there already.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      ServerOptions options, Engine* engine, const Tokenizer* tokenizer,
      const Clock* clock);

  // Shutdown without a grace period, unless there was one.
  ~Server();

  // Where it listens: the addresses of the options, with the real ports.
  const std::string& address() const { return address_; }
  const std::string& admin_address() const { return admin_address_; }
  // Empty: nowhere.
  std::string metrics_address() const {
    return telemetry_ == nullptr ? "" : telemetry_->metrics_address();
  }

  // Refuses new requests with UNAVAILABLE, says NOT_SERVING, waits up to
  // `grace` for live ones, ends the rest with UNAVAILABLE, and closes the
  // engine and the ports. Returns when all that is done, shortly after the
  // grace period. Call it once. REQUIRES: grace is finite.
  void Shutdown(absl::Duration grace);

 private:
  Server(ServerOptions options, std::unique_ptr<Callers> callers);

  absl::Status ListenForClients();
  absl::Status ListenForAdmin();
  // New requests are refused; those that are live go on.
  void StopAccepting();

  const ServerOptions options_;
  const std::unique_ptr<Callers> callers_;
  std::string address_;
  std::string admin_address_;

  BackendSlot slot_;
  RequestRegistry registry_;
  GenerationService generation_;
  IntrospectionService introspection_;
  AdminService admin_;
  HealthService health_;
  // Null: not serving.
  std::unique_ptr<grpc::Server> grpc_server_;
  std::unique_ptr<grpc::Server> admin_server_;

  Outbox outbox_;
  std::unique_ptr<Telemetry> telemetry_;
  std::optional<Publisher> publisher_;
  std::optional<EngineThread> engine_thread_;
  std::optional<ProgressMonitor> monitor_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_SERVER_H_
