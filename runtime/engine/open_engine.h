// From where a model is to an engine that runs it, with all that it needs.

#ifndef RUNTIME_ENGINE_OPEN_ENGINE_H_
#define RUNTIME_ENGINE_OPEN_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/engine/engine.h"
#include "runtime/model/decoder_config.h"
#include "runtime/model/decoder_weights.h"
#include "runtime/model/model_registry.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {

// Scratch memory grows with the threads; beyond, a number is a slip.
inline constexpr int32_t kMaxThreads = 1024;

// Bytes of the KV pool for a model that has been loaded.
using ChoosePool = std::function<int64_t(const ModelInfo& model,
                                         const EngineOptions& options)>;

// What to open, and how to run it.
struct OpenOptions {
  // Empty: the model that Folio carries in itself. Else a file, a folder, or
  // random weights, as FindModel has it.
  std::string model;
  WantedTypes types;
  // Threads that compute, from 1 to kMaxThreads. The thread that calls
  // Engine::Step is one of them.
  int32_t threads = NumUsableCores();
  // Where `seed_source` is 0, one is drawn, so that requests without a seed
  // differ from run to run.
  EngineOptions engine;
  // If there is one, it decides in place of engine.kv_pool_bytes.
  ChoosePool choose_pool;
  // Called when the model's files have been checked, before weights are read.
  std::function<void(const ModelSource& source, const TokenizerInfo& tokenizer)>
      on_checked;
  // Called while weights are read, with elements done and in all.
  LoadProgress on_progress;
};

// An engine and what it works with; they go together, the engine first.
struct OpenedEngine {
  SystemClock clock;
  DecoderConfig model_config;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Engine> engine;
};

// Finds the model, checks its files, reads its weights (which may take seconds
// for each gigabyte), and allocates the KV pool. INVALID_ARGUMENT, or the
// status of reading a file, names the option or the file, what was found and
// what is allowed. The callbacks run on the caller's thread, before this
// returns.
absl::StatusOr<std::unique_ptr<OpenedEngine>> OpenEngine(OpenOptions options);

}  // namespace folio

#endif  // RUNTIME_ENGINE_OPEN_ENGINE_H_
