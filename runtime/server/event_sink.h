// Who is told what happens to a request.

#ifndef RUNTIME_SERVER_EVENT_SINK_H_
#define RUNTIME_SERVER_EVENT_SINK_H_

#include <span>

#include "runtime/base/types.h"
#include "scheduler/token_event.h"

namespace folio {

class EventSink {
 public:
  // The next events of a request, in order; none after the terminal one, from
  // which on the sink may go at any time. Never blocks. Called by one thread at
  // a time for each request.
  virtual void Deliver(RequestId request,
                       std::span<const TokenEvent> events) = 0;

 protected:
  ~EventSink() = default;  // Sinks end with their calls, not through this.
};

}  // namespace folio

#endif  // RUNTIME_SERVER_EVENT_SINK_H_
