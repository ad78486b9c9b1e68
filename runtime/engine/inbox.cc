#include "runtime/engine/inbox.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace folio {

absl::Status Inbox::Submit(std::shared_ptr<const Request> request) {
  {
    std::lock_guard lock(mutex_);
    if (contents_.closed) {
      return absl::UnavailableError("the engine is shutting down");
    }
    if (num_live_ >= max_live_requests_) {
      return absl::ResourceExhaustedError(
          absl::StrCat(num_live_,
                       " requests are running or waiting, as many as this "
                       "engine takes; try again later"));
    }
    ++num_live_;
    contents_.requests.push_back(std::move(request));
    has_contents_ = true;
  }
  changed_.notify_one();
  return absl::OkStatus();
}

void Inbox::Abort(RequestId request) {
  {
    std::lock_guard lock(mutex_);
    if (contents_.closed) return;
    contents_.aborts.push_back(request);
    has_contents_ = true;
  }
  changed_.notify_one();
}

bool Inbox::AskForReport(ReportCallback callback) {
  {
    std::lock_guard lock(mutex_);
    if (contents_.closed) return false;
    contents_.reports.push_back(std::move(callback));
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

void Inbox::NoteEnded(int32_t num_requests) {
  std::lock_guard lock(mutex_);
  num_live_ -= num_requests;
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
