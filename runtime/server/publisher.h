// Carries what the engine hands out to the clients.

#ifndef RUNTIME_SERVER_PUBLISHER_H_
#define RUNTIME_SERVER_PUBLISHER_H_

#include <atomic>
#include <cstdint>
#include <thread>

#include "runtime/engine/outbox.h"
#include "runtime/server/delivery.h"
#include "runtime/server/introspection_service.h"
#include "runtime/server/request_registry.h"
#include "runtime/server/telemetry.h"

namespace folio {

// A thread that takes step outputs from the outbox until that is closed and
// empty. Within an output the report comes before the events, while the
// requests that it names are still in the registry. It is the only one that
// touches metrics and the request log.
class Publisher {
 public:
  // Starts the thread. All must outlive this object.
  Publisher(Outbox* outbox, RequestRegistry* registry,
            IntrospectionService* introspection, Telemetry* telemetry);

  // Waits until everything is delivered. REQUIRES: somebody closes the outbox.
  ~Publisher();

  // Steps whose outputs were taken: a sign of life. Any thread.
  int64_t num_steps() const { return num_steps_; }

 private:
  void Run();
  void DeliverEvents(const StepOutput& output);

  Outbox* const outbox_;
  RequestRegistry* const registry_;
  IntrospectionService* const introspection_;
  Telemetry* const telemetry_;
  Delivery delivery_;
  std::atomic<int64_t> num_steps_ = 0;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace folio

#endif  // RUNTIME_SERVER_PUBLISHER_H_
