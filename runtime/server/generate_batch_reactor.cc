#include "runtime/server/generate_batch_reactor.h"

#include <glog/logging.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/field_error.h"
#include "runtime/base/status_macros.h"
#include "runtime/server/finish_status.h"
#include "runtime/server/quoted.h"
#include "runtime/server/status_conversion.h"
#include "runtime/server/unreadable_requests.h"

namespace folio {
namespace {

template <typename T>
using Traits = grpc::SerializationTraits<T>;

}  // namespace

void GenerateBatchReactor::Deliver(RequestId request,
                                   std::span<const TokenEvent> events) {
  Due due;
  {
    std::lock_guard lock(mutex_);
    Open& open = open_.find(request)->second;
    open.responses.Add(events);
    if (is_cancelled_) {
      if (open.responses.end().has_value()) CloseRequest(request);
    } else if (!open.is_ready && !open.responses.empty()) {
      open.is_ready = true;
      ready_.push_back(request);
    }
    due = NextDue();
  }
  Act(due);
}

void GenerateBatchReactor::OnReadDone(bool ok) {
  if (ok) {
    {
      std::lock_guard lock(mutex_);
      is_handling_ = true;
    }
    Handle(read_);
  }
  Due due;
  {
    std::lock_guard lock(mutex_);
    is_handling_ = false;
    is_reading_ = false;
    if (!ok) reads_ended_ = true;
    due = NextDue();
  }
  Act(due);
}

void GenerateBatchReactor::Handle(grpc::ByteBuffer& bytes) {
  v1::GenerateBatchRequest message;
  absl::Status status;
  if (Traits<v1::GenerateBatchRequest>::Deserialize(&bytes, &message).ok()) {
    status = Do(message);
  } else {
    status = UnreadableRequest();
    message.Clear();  // What was read of it is not to be relied on.
  }
  if (status.ok()) return;
  v1::GenerateBatchResponse refused;
  refused.mutable_response()->set_request_id(message.generate().request_id());
  *refused.mutable_status() = ToRpcStatus(status);
  std::lock_guard lock(mutex_);
  if (!is_cancelled_) refused_.push_back(std::move(refused));
}

absl::Status GenerateBatchReactor::Do(const v1::GenerateBatchRequest& message) {
  switch (message.action_case()) {
    case v1::GenerateBatchRequest::kCancel:
      Cancel(message.cancel());
      return absl::OkStatus();
    case v1::GenerateBatchRequest::kGenerate:
      return Submit(message.generate());
    case v1::GenerateBatchRequest::ACTION_NOT_SET:
      break;
  }
  return FieldError("action", " is not set; give either generate or cancel");
}

absl::Status GenerateBatchReactor::CheckRoom(const v1::GenerateRequest& proto) {
  if (proto.request_id().empty()) {
    return FieldError("request_id",
                      " is empty; on a stream of many requests each needs one "
                      "of its own");
  }
  std::lock_guard lock(mutex_);
  if (open_.size() >= kMaxOpen) {
    return absl::ResourceExhaustedError(
        absl::StrCat(open_.size(),
                     " requests of this stream have not been read to their "
                     "ends, as many as one may have; read them first"));
  }
  const auto named = by_name_.find(proto.request_id());
  if (named != by_name_.end() &&
      !open_.find(named->second)->second.responses.end().has_value()) {
    return absl::AlreadyExistsError(
        absl::StrCat("request_id is ", Quoted(proto.request_id()),
                     "; a request of this stream with that id has not ended"));
  }
  return absl::OkStatus();
}

absl::Status GenerateBatchReactor::Submit(const v1::GenerateRequest& proto) {
  FOLIO_RETURN_IF_ERROR(CheckRoom(proto));
  FOLIO_ASSIGN_OR_RETURN(
      Admission::Checked checked,
      admission_->Check(proto, caller_, TimeLeft(*context_)));
  const RequestId id = checked.request.id;
  {
    std::lock_guard lock(mutex_);
    by_name_.insert_or_assign(proto.request_id(), id);
    open_.emplace(id, Open{.engine = checked.engine,
                           .responses = std::move(checked.responses)});
  }
  const absl::Status submitted = admission_->Submit(
      *checked.engine, std::move(checked.request), /*sink=*/this);
  bool is_too_late;
  {
    std::lock_guard lock(mutex_);
    if (!submitted.ok()) CloseRequest(id);
    // The call may have been cancelled before there was something to abort.
    is_too_late = submitted.ok() && is_cancelled_;
  }
  if (is_too_late) checked.engine->Abort(id);
  return submitted;
}

void GenerateBatchReactor::Cancel(const std::string& name) {
  RequestId id;
  Engine* engine;
  {
    std::lock_guard lock(mutex_);
    const auto entry = by_name_.find(name);
    if (entry == by_name_.end()) return;
    id = entry->second;
    engine = open_.find(id)->second.engine;
  }
  engine->Abort(id);
}

void GenerateBatchReactor::CloseRequest(RequestId request) {
  const auto entry = open_.find(request);
  const auto name = by_name_.find(entry->second.responses.name());
  // Another one may have the name by now: this one has ended.
  if (name != by_name_.end() && name->second == request) by_name_.erase(name);
  open_.erase(entry);
}

// Whoever is ready waits behind the others after each response.
v1::GenerateBatchResponse GenerateBatchReactor::PopResponse() {
  if (!refused_.empty()) {
    v1::GenerateBatchResponse refused = std::move(refused_.front());
    refused_.pop_front();
    return refused;
  }
  const RequestId request = ready_.front();
  ready_.pop_front();
  Open& open = open_.find(request)->second;
  v1::GenerateBatchResponse response;
  *response.mutable_response() = open.responses.Pop();
  if (!open.responses.empty()) {
    ready_.push_back(request);
    return response;
  }
  open.is_ready = false;
  if (open.responses.end().has_value()) {
    *response.mutable_status() = ToRpcStatus(*open.responses.end());
    CloseRequest(request);
  }
  return response;
}

GenerateBatchReactor::Due GenerateBatchReactor::NextDue() {
  Due due;
  if (is_finished_) return due;
  if (!is_writing_ && (!refused_.empty() || !ready_.empty())) {
    in_flight_.Clear();
    bool own_buffer;
    const grpc::Status serialized =
        Traits<v1::GenerateBatchResponse>::Serialize(PopResponse(), &in_flight_,
                                                     &own_buffer);
    CHECK(serialized.ok()) << serialized.error_message();
    due.write = is_writing_ = true;
  }
  const bool ends = reads_ended_ || is_cancelled_ || is_closed_;
  if (!is_reading_ && !ends && refused_.size() < kMaxOpen) {
    due.read = is_reading_ = true;
  }
  if (ends && !HasWork() && !is_writing_ && !is_handling_) {
    due.finish = is_finished_ = true;
  }
  return due;
}

void GenerateBatchReactor::Act(const Due& due) {
  // What was due and is not done yet keeps the reactor alive.
  if (due.read) StartRead(&read_);
  if (due.write) StartWrite(&in_flight_);
  if (!due.finish) return;
  Finish(is_closed_ && !reads_ended_
             ? ToGrpc(StatusOfFinish(FinishReason::kShutdown))
             : grpc::Status::OK);
}

void GenerateBatchReactor::OnWriteDone(bool /*ok*/) {
  Due due;
  {
    std::lock_guard lock(mutex_);
    is_writing_ = false;
    due = NextDue();
  }
  Act(due);
}

void GenerateBatchReactor::OnCancel() {
  std::vector<std::pair<RequestId, Engine*>> live;
  {
    std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    refused_.clear();
    ready_.clear();
    std::vector<RequestId> ended;
    for (const auto& [id, open] : open_) {
      if (open.responses.end().has_value()) {
        ended.push_back(id);
      } else {
        live.emplace_back(id, open.engine);
      }
    }
    for (const RequestId id : ended) CloseRequest(id);
  }
  for (const auto& [id, engine] : live) engine->Abort(id);
  Due due;
  {
    std::lock_guard lock(mutex_);
    due = NextDue();
  }
  Act(due);
}

void GenerateBatchReactor::Close() {
  Due due;
  {
    std::lock_guard lock(mutex_);
    is_closed_ = true;
    due = NextDue();
  }
  Act(due);
}

}  // namespace folio
