// The flags that all commands with an engine in this process share.

#ifndef RUNTIME_CLI_ENGINE_FLAGS_H_
#define RUNTIME_CLI_ENGINE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/executor.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/open_engine.h"
#include "runtime/model/model_registry.h"

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
  RequestCaps caps;

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

// Adds what matters with many requests: policy, shares, limits of the queue and
// of each request.
void AddSchedulingFlags(CLI::App& app, EngineFlags& flags);

// OpenEngine of the model that the flags name, which logs what is worth knowing
// about it, and says on stderr how far loading is when that takes more than a
// second. `options` are those of the flags, perhaps completed by the command.
absl::StatusOr<std::unique_ptr<OpenedEngine>> OpenEngine(
    const EngineFlags& flags, EngineOptions options,
    ChoosePool choose_pool = nullptr);

}  // namespace folio

#endif  // RUNTIME_CLI_ENGINE_FLAGS_H_
