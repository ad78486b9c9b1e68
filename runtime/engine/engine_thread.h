// Runs an engine's loop on a thread of its own.

#ifndef RUNTIME_ENGINE_ENGINE_THREAD_H_
#define RUNTIME_ENGINE_ENGINE_THREAD_H_

#include <thread>

#include "runtime/engine/engine.h"
#include "runtime/engine/outbox.h"

namespace folio {

// While this lives, only its thread may call the engine's loop functions.
class EngineThread {
 public:
  // Starts the thread. Both must outlive this object.
  EngineThread(Engine* engine, Outbox* outbox);

  // Closes the engine, waits until live requests have had their terminal
  // events, and closes the outbox behind them.
  ~EngineThread();

 private:
  void Run();

  Engine* const engine_;
  Outbox* const outbox_;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace folio

#endif  // RUNTIME_ENGINE_ENGINE_THREAD_H_
