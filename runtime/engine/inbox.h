// The edge by which requests enter the engine thread.

#ifndef RUNTIME_ENGINE_INBOX_H_
#define RUNTIME_ENGINE_INBOX_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "runtime/base/types.h"
#include "scheduler/batch_report.h"
#include "scheduler/request.h"
#include "scheduler/token_event.h"

namespace folio {

using ReportCallback = std::function<void(const BatchReport&)>;
using FlushCallback = std::function<void(int32_t pages_freed)>;

struct AbortOrder {
  RequestId request;
  FinishReason reason;
};

// How much may wait, and of whom.
struct QueueLimits {
  // Requests that may wait beside as many as can run.
  int32_t max_waiting_requests = 1024;
  // Prompt tokens of requests that wait. A request that finds nobody waiting is
  // taken whatever its length.
  int64_t max_waiting_tokens = int64_t{1} << 20;
  // Live requests of one tenant. 0: no limit.
  int32_t max_tenant_requests = 0;

  absl::Status Validate() const;
};

// What came in since the engine last looked, in the order of each kind.
struct InboxContents {
  std::vector<std::shared_ptr<const Request>> requests;
  // Each came after its request, if that is here, too.
  std::vector<AbortOrder> aborts;
  std::vector<ReportCallback> reports;
  std::vector<FlushCallback> flushes;
  bool closed = false;

  void Clear() {
    requests.clear();
    aborts.clear();
    reports.clear();
    flushes.clear();
    closed = false;
  }
};

// Bounded by requests that are live (submitted, and not at their terminal event
// yet), in all and of each tenant, and by the prompt tokens of those that wait.
// Thread-safe; the lock is held for a push or a swap only.
class Inbox {
 public:
  // At most `max_running_requests` of the live requests do not wait.
  Inbox(const QueueLimits& limits, int32_t max_running_requests)
      : limits_(limits),
        max_live_requests_(limits.max_waiting_requests + max_running_requests) {
  }

  // RESOURCE_EXHAUSTED at once when a limit is reached, UNAVAILABLE after
  // Close.
  absl::Status Submit(std::shared_ptr<const Request> request);

  // May name a request that has ended.
  void Abort(const AbortOrder& abort);

  // `callback` will be called with the engine's state between two steps. False
  // after Close: it won't.
  bool AskForReport(ReportCallback callback);

  // As AskForReport: `callback` will be called when it is done.
  bool FlushPrefixCache(FlushCallback callback);

  // No more requests. What is inside stays to be taken.
  void Close();

  // Moves everything out, into `contents`, whose memory is kept for the next
  // swap.
  void Take(InboxContents& contents);

  // The request has reached its terminal event.
  void NoteEnded(RequestId request);

  // Requests with so many prompt tokens no longer wait.
  void NoteLeftQueue(int64_t num_tokens);

  // Returns when there is something to take, or the inbox is closed.
  void Wait();

 private:
  // Calls `put_in` under the lock; false after Close.
  template <typename PutIn>
  bool Put(const PutIn& put_in);

  // Needs mutex_.
  absl::Status CheckRoomFor(const Request& request) const;

  const QueueLimits limits_;
  const int32_t max_live_requests_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  InboxContents contents_;
  bool has_contents_ = false;
  int64_t waiting_tokens_ = 0;
  absl::flat_hash_map<RequestId, std::shared_ptr<const Request>> live_;
  absl::flat_hash_map<std::string, int32_t> live_of_tenant_;
};

}  // namespace folio

#endif  // RUNTIME_ENGINE_INBOX_H_
