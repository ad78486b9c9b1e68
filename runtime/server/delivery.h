// How the events of a step reach their sinks.

#ifndef RUNTIME_SERVER_DELIVERY_H_
#define RUNTIME_SERVER_DELIVERY_H_

#include <array>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "runtime/base/types.h"
#include "runtime/server/event_sink.h"
#include "scheduler/token_event.h"

namespace folio {

// Delivers with two threads, the caller's and one of its own: a sink starts a
// write, and gRPC sends what two threads write to a connection together, where
// one thread that writes alone waits for the kernel with each message. What is
// delivered to one request keeps its order. Used by one thread.
class Delivery {
 public:
  Delivery();
  ~Delivery();

  // Has `events` delivered by the next Run, until when they must live, as must
  // `sink`, unless they end with the terminal event.
  void Add(EventSink* sink, RequestId request,
           std::span<const TokenEvent> events);

  // Returns when all that was added is delivered.
  void Run();

 private:
  struct Item {
    EventSink* sink;
    RequestId request;
    std::span<const TokenEvent> events;
  };

  // A request is always in the same lane, and a lane is delivered by whoever
  // takes it: a helper that the machine lets wait delays nobody.
  static constexpr size_t kNumLanes = 8;

  void Help();
  void DeliverLanes();

  size_t num_items_ = 0;
  std::array<std::vector<Item>, kNumLanes> lanes_;  // Constant within Run.

  std::mutex mutex_;
  std::condition_variable has_lanes_;
  std::condition_variable is_done_;
  size_t next_lane_ = kNumLanes;  // Those before it are taken.
  int num_at_work_ = 0;           // Threads that have a lane.
  bool ends_ = false;
  std::thread helper_;  // Last: it uses the others.
};

}  // namespace folio

#endif  // RUNTIME_SERVER_DELIVERY_H_
