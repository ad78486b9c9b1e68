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
#include "runtime/server/generation_service.h"
#include "runtime/server/health_service.h"
#include "runtime/server/introspection_service.h"
#include "runtime/server/progress_monitor.h"
#include "runtime/server/publisher.h"
#include "runtime/server/request_registry.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {

struct ServerOptions {
  std::string listen = "127.0.0.1:50051";  // ADDR:PORT; port 0: any free one.
  // Health says NOT_SERVING when requests are live and no step was made for so
  // long. At least 10 ms.
  absl::Duration stall_timeout = absl::Seconds(30);
};

// Serves folio.v1.Generation, folio.v1.Introspection, health and reflection.
//
// Events flow one way: EngineThread -> Outbox -> Publisher -> reactors. Locks
// are held for moments only, and never two of them at once.
class Server {
 public:
  // Serves from the time it returns. INVALID_ARGUMENT or UNAVAILABLE names an
  // address that can't be listened on; INVALID_ARGUMENT, a stall_timeout that
  // is too short. All must outlive the server; `clock` is the engine's, and the
  // engine's loop belongs to the server from now on.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const ServerOptions& options, Engine* engine, const Tokenizer* tokenizer,
      const Clock* clock);

  // Shutdown without a grace period, unless there was one.
  ~Server();

  // Where it listens: the address of the options, with the real port.
  const std::string& address() const { return address_; }

  // Refuses new requests with UNAVAILABLE, says NOT_SERVING, waits up to
  // `grace` for live ones, ends the rest with UNAVAILABLE, and closes the
  // engine and the port. Returns when all that is done, shortly after the grace
  // period. Call it once.
  // REQUIRES: grace is finite.
  void Shutdown(absl::Duration grace);

 private:
  Server(Engine* engine, const Tokenizer* tokenizer, const Clock* clock);

  absl::Status Listen(const std::string& listen);
  void StartThreads(absl::Duration stall_timeout);

  Engine* const engine_;
  std::string address_;

  RequestRegistry registry_;
  GenerationService generation_;
  IntrospectionService introspection_;
  HealthService health_;
  std::unique_ptr<grpc::Server> grpc_server_;  // Null: not serving.

  Outbox outbox_;
  std::optional<Publisher> publisher_;
  std::optional<EngineThread> engine_thread_;
  std::optional<ProgressMonitor> monitor_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_SERVER_H_
