#include "runtime/server/generate_reactor.h"

#include <utility>

#include "runtime/server/response_conversion.h"
#include "runtime/server/status_conversion.h"

namespace folio {
namespace {

// When a response has so many tokens and alternatives, the next events start
// another one. Each takes 20 bytes at most, while clients refuse messages of
// more than 4 MiB unless they are told otherwise.
constexpr int64_t kMaxEntries = 32768;

int64_t NumEntries(const TokenEvent& event) {
  return static_cast<int64_t>(
      event.sampled.tokens.size() + event.sampled.top.size() +
      event.prompt.tokens.size() + event.prompt.top.size());
}

}  // namespace

GenerateReactor::GenerateReactor(Engine* engine, RequestId id, std::string name,
                                 uint64_t seed)
    : engine_(engine), id_(id), name_(std::move(name)) {
  v1::GenerateResponse& first = pending_.emplace_back();
  first.set_request_id(name_);
  first.set_seed(seed);
}

void GenerateReactor::Deliver(std::span<const TokenEvent> events) {
  Action action;
  {
    std::lock_guard lock(mutex_);
    for (const TokenEvent& event : events) {
      AppendToProto(event, ResponseFor(event));
      if (event.terminal) end_ = StatusOfFinish(event.finish_reason);
    }
    action = NextAction();
  }
  Act(action);
}

v1::GenerateResponse& GenerateReactor::ResponseFor(const TokenEvent& event) {
  const int64_t entries = NumEntries(event);
  if (pending_.empty() ||
      (last_entries_ > 0 && last_entries_ + entries > kMaxEntries)) {
    pending_.emplace_back().set_request_id(name_);
    last_entries_ = 0;
  }
  last_entries_ += entries;
  return pending_.back();
}

GenerateReactor::Action GenerateReactor::NextAction() {
  if (is_writing_ || pending_.empty()) return Action::kNone;
  is_writing_ = true;
  in_flight_ = std::move(pending_.front());
  pending_.pop_front();
  return pending_.empty() && end_.has_value() ? Action::kWriteLast
                                              : Action::kWrite;
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
