// Which requests are live, and who waits for their events.

#ifndef RUNTIME_SERVER_REQUEST_REGISTRY_H_
#define RUNTIME_SERVER_REQUEST_REGISTRY_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/types.h"
#include "runtime/server/event_sink.h"
#include "runtime/server/request_facts.h"
#include "scheduler/batch_report.h"

namespace folio {

// A request is here from before it is submitted until its terminal event is
// taken out of the outbox; so whoever finds its sink here may use it: that does
// not end before it has had that event. Thread-safe.
class RequestRegistry {
 public:
  struct Live {
    EventSink* sink = nullptr;
    RequestFacts facts;
    bool is_aborted = false;
  };

  // Takes in a request that is about to be submitted; where facts.name is
  // empty, makes a name. Returns the name. UNAVAILABLE after StopAccepting,
  // ALREADY_EXISTS when a live request of the tenant has it: the request must
  // not be submitted.
  absl::StatusOr<std::string> Add(RequestId id, RequestFacts facts);

  // Who gets its events. REQUIRES: `id` is here, and is submitted only then.
  void SetSink(RequestId id, EventSink* sink);

  // REQUIRES: `id` is here.
  EventSink* Find(RequestId id) const;
  Live Remove(RequestId id);

  // The live request of a tenant that has this name, and notes that it is to be
  // ended: it may be on its way into the engine still.
  std::optional<RequestId> NoteAbort(const std::string& tenant,
                                     const std::string& name);

  // Whether that was noted; false when the request has ended.
  bool IsAborted(RequestId id) const;

  // What the clients call the requests of these sequences; where a request is
  // not here (it did not come from a client), its number.
  std::vector<std::string> NamesOf(
      std::span<const SequenceMemory> sequences) const;

  size_t size() const;
  bool empty() const { return size() == 0; }

  // From now on, Add refuses.
  void StopAccepting();

  // Returns when no request is live, or after `timeout`.
  void WaitUntilEmpty(absl::Duration timeout) const;

 private:
  using Name = std::pair<std::string, std::string>;  // Tenant, name.

  mutable std::mutex mutex_;
  mutable std::condition_variable emptied_;
  // Guarded by mutex_.
  absl::flat_hash_map<RequestId, Live> live_;
  absl::flat_hash_map<Name, RequestId> by_name_;
  bool accepting_ = true;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_REQUEST_REGISTRY_H_
