#include "runtime/engine/inbox.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace folio {

absl::Status QueueLimits::Validate() const {
  const auto at_least_0 = [](const char* name, int64_t value) {
    return value >= 0 ? absl::OkStatus()
                      : absl::InvalidArgumentError(absl::StrCat(
                            name, " is ", value, "; it must be at least 0"));
  };
  FOLIO_RETURN_IF_ERROR(
      at_least_0("max_waiting_requests", max_waiting_requests));
  FOLIO_RETURN_IF_ERROR(at_least_0("max_waiting_tokens", max_waiting_tokens));
  return at_least_0("max_tenant_requests", max_tenant_requests);
}

absl::Status Inbox::CheckRoomFor(const Request& request) const {
  if (contents_.closed) {
    return absl::UnavailableError("the engine is shutting down");
  }
  if (static_cast<int64_t>(live_.size()) >= max_live_requests_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(live_.size(),
                     " requests are running or waiting, as many as this "
                     "engine takes; try again later"));
  }
  const int64_t tokens = static_cast<int64_t>(request.prompt.size());
  if (waiting_tokens_ > 0 &&
      waiting_tokens_ + tokens > limits_.max_waiting_tokens) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "prompts of ", waiting_tokens_, " tokens are waiting; with the ",
        tokens, " of this one that is more than the ",
        limits_.max_waiting_tokens,
        " that this engine takes; try again later"));
  }
  const auto of_tenant = live_of_tenant_.find(request.tenant);
  if (limits_.max_tenant_requests > 0 && of_tenant != live_of_tenant_.end() &&
      of_tenant->second >= limits_.max_tenant_requests) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "this tenant has ", of_tenant->second,
        " running or waiting, as many requests as one may have; try again "
        "later"));
  }
  return absl::OkStatus();
}

absl::Status Inbox::Submit(std::shared_ptr<const Request> request) {
  {
    std::lock_guard lock(mutex_);
    FOLIO_RETURN_IF_ERROR(CheckRoomFor(*request));
    waiting_tokens_ += static_cast<int64_t>(request->prompt.size());
    live_.emplace(request->id, request);
    ++live_of_tenant_[request->tenant];
    contents_.requests.push_back(std::move(request));
    has_contents_ = true;
  }
  changed_.notify_one();
  return absl::OkStatus();
}

void Inbox::Abort(const AbortOrder& abort) {
  Put([&] { contents_.aborts.push_back(abort); });
}

bool Inbox::AskForReport(ReportCallback callback) {
  return Put([&] { contents_.reports.push_back(std::move(callback)); });
}

bool Inbox::FlushPrefixCache(FlushCallback callback) {
  return Put([&] { contents_.flushes.push_back(std::move(callback)); });
}

template <typename PutIn>
bool Inbox::Put(const PutIn& put_in) {
  {
    std::lock_guard lock(mutex_);
    if (contents_.closed) return false;
    put_in();
    has_contents_ = true;
  }
  changed_.notify_one();
  return true;
}

void Inbox::Close() {
  {
    std::lock_guard lock(mutex_);
    contents_.closed = true;
    has_contents_ = true;
  }
  changed_.notify_one();
}

void Inbox::NoteEnded(RequestId request) {
  std::lock_guard lock(mutex_);
  const auto entry = live_.find(request);
  const auto of_tenant = live_of_tenant_.find(entry->second->tenant);
  if (--of_tenant->second == 0) live_of_tenant_.erase(of_tenant);
  live_.erase(entry);
}

void Inbox::NoteLeftQueue(int64_t num_tokens) {
  std::lock_guard lock(mutex_);
  waiting_tokens_ -= num_tokens;
}

void Inbox::Take(InboxContents& contents) {
  contents.Clear();
  std::lock_guard lock(mutex_);
  if (!has_contents_) return;
  std::swap(contents, contents_);
  contents_.closed = contents.closed;
  has_contents_ = contents.closed;
}

void Inbox::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return has_contents_; });
}

}  // namespace folio
