// From a client's message to a request that the engine has.

#ifndef RUNTIME_SERVER_ADMISSION_H_
#define RUNTIME_SERVER_ADMISSION_H_

#include <grpcpp/server_context.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "folio/v1/generation.pb.h"
#include "runtime/server/backend.h"
#include "runtime/server/caller.h"
#include "runtime/server/event_sink.h"
#include "runtime/server/request_registry.h"
#include "runtime/server/response_queue.h"
#include "scheduler/request.h"

namespace folio {

// The one way in for requests, whatever call they come by. Thread-safe.
class Admission {
 public:
  // A request that was checked and has its place in the registry. It must be
  // submitted.
  struct Checked {
    Engine* engine;
    Request request;
    ResponseQueue responses;  // For its sink.
  };

  // All must outlive it. With `keep_prompts`, the registry has them, too, for
  // the request log.
  Admission(const BackendSlot* slot, RequestRegistry* registry,
            bool keep_prompts)
      : slot_(slot), registry_(registry), keep_prompts_(keep_prompts) {}

  // Errors are those of generation.proto. `time_left` is that of the call.
  absl::StatusOr<Checked> Check(const v1::GenerateRequest& proto,
                                const Caller& caller, absl::Duration time_left);

  // From OK on, `sink` gets the request's events; they may come before this
  // returns. RESOURCE_EXHAUSTED or UNAVAILABLE: it gets none.
  absl::Status Submit(Engine& engine, Request request, EventSink* sink);

 private:
  const BackendSlot* const slot_;
  RequestRegistry* const registry_;
  const bool keep_prompts_;
};

// How long the call may still take; infinite without a deadline. (The engine's
// clock and the system's may differ, since only one of them jumps when the
// machine's time is set; what is left until a deadline does not.)
absl::Duration TimeLeft(const grpc::ServerContextBase& context);

}  // namespace folio

#endif  // RUNTIME_SERVER_ADMISSION_H_
