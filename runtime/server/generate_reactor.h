// One Generate call: events in, responses out.

#ifndef RUNTIME_SERVER_GENERATE_REACTOR_H_
#define RUNTIME_SERVER_GENERATE_REACTOR_H_

#include <grpcpp/support/server_callback.h>

#include <mutex>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "folio/v1/generation.pb.h"
#include "runtime/base/types.h"
#include "runtime/engine/engine.h"
#include "runtime/server/event_sink.h"
#include "runtime/server/response_queue.h"
#include "scheduler/token_event.h"

namespace folio {

// One write is in flight at a time; what comes meanwhile is gathered in a
// ResponseQueue, and nobody waits for it.
//
// Invariant: the call is finished only after the terminal event. So the reactor
// outlives every use that the publisher makes of it, and a cancelled call, too,
// waits for its terminal event. It deletes itself when gRPC is done with it.
class GenerateReactor final
    : public grpc::ServerWriteReactor<v1::GenerateResponse>,
      public EventSink {
 public:
  // `engine` must outlive the reactor.
  GenerateReactor(Engine* engine, RequestId id, ResponseQueue queue)
      : engine_(engine), id_(id), queue_(std::move(queue)) {}

  void Deliver(RequestId request, std::span<const TokenEvent> events) override;

  // gRPC's callbacks.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  enum class Action { kNone, kWrite, kWriteLast };

  // Needs mutex_. After it said what to do, mutex_ must be unlocked for Act:
  // gRPC may run callbacks, and even the destructor, at once.
  Action NextAction();
  void Act(Action action);

  Engine* const engine_;
  const RequestId id_;

  std::mutex mutex_;
  // Guarded by mutex_.
  ResponseQueue queue_;
  bool is_writing_ = false;

  // Written under mutex_, and then left alone while gRPC uses it: until
  // OnWriteDone, and for ever.
  v1::GenerateResponse in_flight_;
  std::optional<absl::Status> end_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_GENERATE_REACTOR_H_
