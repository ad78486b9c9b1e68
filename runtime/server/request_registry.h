// Which requests are live, and who waits for their events.

#ifndef RUNTIME_SERVER_REQUEST_REGISTRY_H_
#define RUNTIME_SERVER_REQUEST_REGISTRY_H_

#include <condition_variable>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "runtime/base/types.h"
#include "scheduler/batch_report.h"

namespace folio {

class GenerateReactor;

// A reactor is here from before its request is submitted until its terminal
// event is taken out of the outbox; so whoever finds it here may use it: it
// does not end before it has had that event. Thread-safe.
class RequestRegistry {
 public:
  // False after StopAccepting: the request must not be submitted.
  bool Add(RequestId id, GenerateReactor* reactor);

  // REQUIRES: `id` is here.
  GenerateReactor* Find(RequestId id) const;
  GenerateReactor* Remove(RequestId id);

  // What the clients call the requests of these sequences; where a request is
  // not here (it did not come from a client), its number.
  std::vector<std::string> NamesOf(
      std::span<const SequenceMemory> sequences) const;

  bool empty() const;

  // From now on, Add returns false.
  void StopAccepting();

  // Returns when no request is live, or after `timeout`.
  void WaitUntilEmpty(absl::Duration timeout) const;

 private:
  using Reactors = absl::flat_hash_map<RequestId, GenerateReactor*>;

  mutable std::mutex mutex_;
  mutable std::condition_variable emptied_;
  Reactors reactors_;      // Guarded by mutex_.
  bool accepting_ = true;  // Guarded by mutex_.
};

}  // namespace folio

#endif  // RUNTIME_SERVER_REQUEST_REGISTRY_H_
