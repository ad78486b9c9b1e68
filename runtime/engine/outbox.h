// The edge by which events leave the engine thread.

#ifndef RUNTIME_ENGINE_OUTBOX_H_
#define RUNTIME_ENGINE_OUTBOX_H_

#include <condition_variable>
#include <list>
#include <mutex>

#include "runtime/engine/step_output.h"

namespace folio {

// A queue of step outputs from one producer to one consumer. Buffers travel in
// circles: Push and Pop swap contents and move list nodes, so a steady flow
// allocates nothing.
// Never blocks the producer; what waits here is bounded by what live requests
// may still generate. Thread-safe.
class Outbox {
 public:
  // Takes the contents of `output`, and leaves a cleared buffer in it.
  void Push(StepOutput& output);

  // Waits for the next output and swaps it into `output`. False: the outbox is
  // closed and empty.
  bool Pop(StepOutput& output);

  // Nothing will be pushed any more.
  void Close();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<StepOutput> queue_;   // Guarded by mutex_.
  std::list<StepOutput> unused_;  // Guarded by mutex_.
  bool closed_ = false;           // Guarded by mutex_.
};

}  // namespace folio

#endif  // RUNTIME_ENGINE_OUTBOX_H_
