// The edge by which requests enter the engine thread.

#ifndef RUNTIME_ENGINE_INBOX_H_
#define RUNTIME_ENGINE_INBOX_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/types.h"
#include "scheduler/batch_report.h"
#include "scheduler/request.h"

namespace folio {

using ReportCallback = std::function<void(const BatchReport&)>;

// What came in since the engine last looked, in the order of each kind.
struct InboxContents {
  std::vector<std::shared_ptr<const Request>> requests;
  // Each came after its request, if that is here, too.
  std::vector<RequestId> aborts;
  std::vector<ReportCallback> reports;
  bool closed = false;

  void Clear() {
    requests.clear();
    aborts.clear();
    reports.clear();
    closed = false;
  }
};

// Bounded by requests that are live: submitted, and not at their terminal event
// yet. Thread-safe; the lock is held for a push or a swap only.
class Inbox {
 public:
  explicit Inbox(int32_t max_live_requests)
      : max_live_requests_(max_live_requests) {}

  // RESOURCE_EXHAUSTED at once when as many requests are live as may be,
  // UNAVAILABLE after Close.
  absl::Status Submit(std::shared_ptr<const Request> request);

  // May name a request that has ended.
  void Abort(RequestId request);

  // `callback` will be called with the engine's state between two steps. False
  // after Close: it won't.
  bool AskForReport(ReportCallback callback);

  // No more requests. What is inside stays to be taken.
  void Close();

  // Moves everything out, into `contents`, whose memory is kept for the next
  // swap.
  void Take(InboxContents& contents);

  // So many requests have reached their terminal event.
  void NoteEnded(int32_t num_requests);

  // Returns when there is something to take, or the inbox is closed.
  void Wait();

 private:
  const int32_t max_live_requests_;

  std::mutex mutex_;
  std::condition_variable changed_;
  InboxContents contents_;     // Guarded by mutex_.
  int32_t num_live_ = 0;       // Guarded by mutex_.
  bool has_contents_ = false;  // Guarded by mutex_.
};

}  // namespace folio

#endif  // RUNTIME_ENGINE_INBOX_H_
