#include "runtime/server/generate_reactor.h"

#include "runtime/server/status_conversion.h"

namespace folio {

void GenerateReactor::Deliver(RequestId /*request*/,
                              std::span<const TokenEvent> events) {
  Action action;
  {
    std::lock_guard lock(mutex_);
    queue_.Add(events);
    action = NextAction();
  }
  Act(action);
}

GenerateReactor::Action GenerateReactor::NextAction() {
  if (is_writing_ || queue_.empty()) return Action::kNone;
  is_writing_ = true;
  in_flight_ = queue_.Pop();
  if (queue_.empty()) end_ = queue_.end();
  return end_.has_value() ? Action::kWriteLast : Action::kWrite;
}

void GenerateReactor::Act(Action action) {
  switch (action) {
    case Action::kNone:
      return;
    case Action::kWrite:
      StartWrite(&in_flight_);
      return;
    case Action::kWriteLast:
      StartWriteAndFinish(&in_flight_, grpc::WriteOptions(), ToGrpc(*end_));
      return;
  }
}

// A write that failed is not looked at: OnCancel tells that the client is gone,
// and further writes fail as fast.
void GenerateReactor::OnWriteDone(bool /*ok*/) {
  Action action;
  {
    std::lock_guard lock(mutex_);
    is_writing_ = false;
    action = NextAction();
  }
  Act(action);
}

void GenerateReactor::OnCancel() { engine_->Abort(id_); }

void GenerateReactor::OnDone() { delete this; }

}  // namespace folio
