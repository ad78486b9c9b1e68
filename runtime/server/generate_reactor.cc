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
  AddPending(/*sample=*/0).response.set_seed(seed);
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

GenerateReactor::Pending& GenerateReactor::AddPending(int32_t sample) {
  Pending& pending = pending_.emplace_back();
  pending.response.set_request_id(name_);
  pending.response.set_sample_index(sample);
  growing_[sample] = &pending;
  return pending;
}

v1::GenerateResponse& GenerateReactor::ResponseFor(const TokenEvent& event) {
  // The terminal event is of all samples, and in the last message.
  if (event.terminal && !pending_.empty()) return pending_.back().response;
  const int64_t entries = NumEntries(event);
  const auto found = growing_.find(event.sample_index);
  const bool has_room = found != growing_.end() &&
                        (found->second->num_entries == 0 ||
                         found->second->num_entries + entries <= kMaxEntries);
  Pending& pending = has_room ? *found->second : AddPending(event.sample_index);
  pending.num_entries += entries;
  return pending.response;
}

GenerateReactor::Action GenerateReactor::NextAction() {
  if (is_writing_ || pending_.empty()) return Action::kNone;
  is_writing_ = true;
  Pending& next = pending_.front();
  in_flight_ = std::move(next.response);
  const auto growing = growing_.find(in_flight_.sample_index());
  if (growing != growing_.end() && growing->second == &next) {
    growing_.erase(growing);
  }
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
