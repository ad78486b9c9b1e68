// The engine in this process, without a server.

#ifndef BENCH_LOAD_ENGINE_TARGET_H_
#define BENCH_LOAD_ENGINE_TARGET_H_

#include <memory>
#include <string>

#include "bench/load/target.h"
#include "runtime/engine/engine.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {

// Runs the engine on a thread of its own; listeners are called on another. Both
// must outlive the target, which closes the engine at its end. Nobody else may
// drive the engine.
std::unique_ptr<Target> OpenEngineTarget(Engine* engine,
                                         const Tokenizer* tokenizer);

}  // namespace folio

#endif  // BENCH_LOAD_ENGINE_TARGET_H_
