// Notices when requests are live and nothing happens.

#ifndef RUNTIME_SERVER_PROGRESS_MONITOR_H_
#define RUNTIME_SERVER_PROGRESS_MONITOR_H_

#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/time/time.h"
#include "runtime/server/health_service.h"
#include "runtime/server/publisher.h"
#include "runtime/server/request_registry.h"

namespace folio {

// A thread that looks several times in `stall_timeout`. Health becomes
// NOT_SERVING when requests have been live that long without a single step, and
// SERVING again with the next one.
class ProgressMonitor {
 public:
  // Starts the thread. All must outlive this object.
  // REQUIRES: stall_timeout is milliseconds, at least.
  ProgressMonitor(absl::Duration stall_timeout, const RequestRegistry* registry,
                  const Publisher* publisher, HealthService* health);
  ~ProgressMonitor();

 private:
  void Run();
  bool WaitOrStop();

  const absl::Duration stall_timeout_;
  const RequestRegistry* const registry_;
  const Publisher* const publisher_;
  HealthService* const health_;

  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;   // Guarded by mutex_.
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace folio

#endif  // RUNTIME_SERVER_PROGRESS_MONITOR_H_
