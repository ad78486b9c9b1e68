#include "runtime/server/publisher.h"

#include <cstddef>
#include <span>

#include "runtime/server/generate_reactor.h"

namespace folio {

Publisher::Publisher(Outbox* outbox, RequestRegistry* registry,
                     IntrospectionService* introspection)
    : outbox_(outbox),
      registry_(registry),
      introspection_(introspection),
      thread_([this] { Run(); }) {}

Publisher::~Publisher() { thread_.join(); }

void Publisher::Run() {
  StepOutput output;
  while (outbox_->Pop(output)) {
    if (output.stepped) ++num_steps_;
    output.AnswerCallbacks();
    if (output.stepped) introspection_->Publish(output.report);
    DeliverEvents(output.events);
  }
}

// Neighbours of one request go together, so that a last token and the end of
// its request make one message.
void Publisher::DeliverEvents(const TokenEvents& events) {
  std::span<const TokenEvent> rest = events.span();
  while (!rest.empty()) {
    const RequestId id = rest.front().request_id;
    size_t count = 1;
    while (count < rest.size() && rest[count].request_id == id) ++count;
    const bool ends = rest[count - 1].terminal;
    // From its terminal event on, the reactor may go at any time.
    GenerateReactor* const reactor =
        ends ? registry_->Remove(id) : registry_->Find(id);
    reactor->Deliver(rest.first(count));
    rest = rest.subspan(count);
  }
}

}  // namespace folio
