// An engine in this process, from the flags that all commands with one share.

#ifndef RUNTIME_CLI_OPEN_ENGINE_H_
#define RUNTIME_CLI_OPEN_ENGINE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/engine/engine.h"
#include "runtime/model/decoder_config.h"
#include "runtime/model/model_registry.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {

// Scratch memory grows with the sequences of a step; beyond, a number is a
// slip.
inline constexpr int kMaxBatchSequences = 1 << 16;

struct EngineFlags {
  std::string model;  // As FindModel has it; empty: the embedded one.
  WantedTypes types;
  int32_t threads = NumUsableCores();
  int32_t page_size = EngineOptions().page_size;
  std::optional<int64_t> kv_pool_bytes;
  std::optional<int32_t> max_batch_tokens;
  std::optional<int32_t> max_batch_sequences;
  bool no_prefix_cache = false;

  // Only `serve` has flags for these.
  SchedulerOptions scheduling;
  std::optional<absl::Duration> priority_ageing;
  QueueLimits queue;

  // The flags as options, with the defaults of EngineOptions.
  EngineOptions ToOptions() const;
};

// What --help says of flags that are left out: the defaults of EngineOptions,
// for commands that have no better ones.
struct EngineFlagDefaults {
  EngineFlagDefaults();

  std::string kv_pool;
  std::string max_batch_tokens;
  std::string max_batch_sequences;
};

// Adds --weights-dtype and --kv-dtype.
void AddTypeOptions(CLI::App& app, WantedTypes& types);

// Adds --model and the others to `app`. `flags` must outlive its parsing.
void AddEngineFlags(CLI::App& app, EngineFlags& flags,
                    const EngineFlagDefaults& defaults = {});

// Adds what matters with many requests: policy, shares, limits of the queue.
void AddSchedulingFlags(CLI::App& app, EngineFlags& flags);

// An engine and what it works with. `engine` is to be driven by hand or by an
// EngineThread.
struct OpenedEngine {
  SystemClock clock;
  DecoderConfig model_config;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Engine> engine;
};

// Opens the model that the flags name, and makes an engine for it; says on
// stderr how far it is when that takes more than a second. `options` are those
// of the flags, perhaps completed by the command. `choose_pool`, if there is
// one, gives the bytes of the KV pool once the model is known, in place of
// those in `options`. Errors say what is wrong with the model or the options.
using ChoosePool = std::function<int64_t(const ModelInfo& model,
                                         const EngineOptions& options)>;
absl::StatusOr<std::unique_ptr<OpenedEngine>> OpenEngine(
    const EngineFlags& flags, EngineOptions options,
    const ChoosePool& choose_pool = nullptr);

}  // namespace folio

#endif  // RUNTIME_CLI_OPEN_ENGINE_H_
