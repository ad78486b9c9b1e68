#include "runtime/server/publisher.h"

#include <cstddef>
#include <span>

#include "runtime/server/event_sink.h"

namespace folio {

Publisher::Publisher(Outbox* outbox, RequestRegistry* registry,
                     IntrospectionService* introspection, Telemetry* telemetry)
    : outbox_(outbox),
      registry_(registry),
      introspection_(introspection),
      telemetry_(telemetry),
      thread_([this] { Run(); }) {}

Publisher::~Publisher() { thread_.join(); }

void Publisher::Run() {
  StepOutput output;
  while (outbox_->Pop(output)) {
    if (output.stepped) ++num_steps_;
    telemetry_->Observe(output);
    output.AnswerCallbacks();
    if (output.stepped) introspection_->Publish(output.report);
    DeliverEvents(output);
  }
}

// Neighbours of one request go together, so that a last token and the end of
// its request make one message.
void Publisher::DeliverEvents(const StepOutput& output) {
  std::span<const TokenEvent> rest = output.events.span();
  while (!rest.empty()) {
    const RequestId id = rest.front().request_id;
    size_t count = 1;
    while (count < rest.size() && rest[count].request_id == id) ++count;
    const TokenEvent& last = rest[count - 1];
    EventSink* sink;
    if (last.terminal) {
      const RequestRegistry::Live ended = registry_->Remove(id);
      telemetry_->LogEnd(ended.facts, last, output.time);
      sink = ended.sink;
    } else {
      sink = registry_->Find(id);
    }
    delivery_.Add(sink, id, rest.first(count));
    rest = rest.subspan(count);
  }
  delivery_.Run();
}

}  // namespace folio
