// One Generate call: events in, responses out.

#ifndef RUNTIME_SERVER_GENERATE_REACTOR_H_
#define RUNTIME_SERVER_GENERATE_REACTOR_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "folio/v1/generation.pb.h"
#include "runtime/base/types.h"
#include "runtime/engine/engine.h"
#include "scheduler/token_event.h"

namespace folio {

// One write is in flight at a time. Events that come meanwhile are gathered,
// those of each sample in a response of its own, so a slow client costs its own
// memory only, and nobody waits for it.
//
// Invariant: the call is finished only after the terminal event. So the reactor
// outlives every use that the publisher makes of it, and a cancelled call, too,
// waits for its terminal event. It deletes itself when gRPC is done with it.
class GenerateReactor final
    : public grpc::ServerWriteReactor<v1::GenerateResponse> {
 public:
  // `engine` must outlive the reactor. `name` is what the client calls the
  // request.
  GenerateReactor(Engine* engine, RequestId id, std::string name,
                  uint64_t seed);

  const std::string& name() const { return name_; }

  // Takes in the next events of the request, in order, and writes them as soon
  // as possible; after the terminal one the reactor must not be used. Never
  // blocks. Called by one thread at a time.
  void Deliver(std::span<const TokenEvent> events);

  // gRPC's callbacks.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  enum class Action { kNone, kWrite, kWriteLast };

  // A response that is not written yet.
  struct Pending {
    v1::GenerateResponse response;
    int64_t num_entries = 0;  // Its tokens and alternatives.
  };

  // These need mutex_. After NextAction said what to do, mutex_ must be
  // unlocked for Act: gRPC may run callbacks, and even the destructor, at once.
  Pending& AddPending(int32_t sample);
  v1::GenerateResponse& ResponseFor(const TokenEvent& event);
  Action NextAction();
  void Act(Action action);

  Engine* const engine_;
  const RequestId id_;
  const std::string name_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::deque<Pending> pending_;  // In the order of writing.
  // Of each sample the last of them, which its next events go to.
  absl::flat_hash_map<int32_t, Pending*> growing_;
  bool is_writing_ = false;

  // Written under mutex_, and then left alone while gRPC uses it: until
  // OnWriteDone, and for ever.
  v1::GenerateResponse in_flight_;
  std::optional<absl::Status> end_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_GENERATE_REACTOR_H_
