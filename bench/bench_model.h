// A model for benchmarks: loaded once, run by several engines.

#ifndef BENCH_BENCH_MODEL_H_
#define BENCH_BENCH_MODEL_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/load/inproc.h"
#include "bench/load/metrics.h"
#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/engine/engine.h"
#include "runtime/model/model.h"
#include "runtime/model/model_registry.h"
#include "runtime/tokenizer/byte_tokenizer.h"

namespace folio {

struct BenchModelFlags {
  std::string model = "random:llama-135m";
  WantedTypes types;
  int32_t threads = NumUsableCores();
};

// Adds --model, --weights-dtype, --kv-dtype and --threads. `flags` must outlive
// the parsing.
void AddModelFlags(CLI::App& app, BenchModelFlags& flags);

// Engines made of it take turns with the one model; a step of one ends before
// another's begins. They must not outlive it.
class BenchModel {
 public:
  static absl::StatusOr<std::unique_ptr<BenchModel>> Open(
      const BenchModelFlags& flags, const ModelLimits& limits);

  // REQUIRES: options.model_limits() are within those of Open, with the same
  // page size.
  absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(
      const EngineOptions& options);

  // Serves the requests (RunInProcess); a status when one of them fails.
  absl::StatusOr<std::vector<RequestRecord>> Serve(
      std::vector<TimedRequest> requests, Engine& engine,
      const InprocOptions& options = {}) const;
  absl::StatusOr<std::vector<RequestRecord>> Serve(
      std::span<const LoadRequest> load, Engine& engine,
      const InprocOptions& options = {}) const;

  const ModelInfo& info() const { return model_->info(); }

 private:
  explicit BenchModel(int threads) : executor_(MakeParallelExecutor(threads)) {}

  const SystemClock clock_;
  const std::unique_ptr<Executor> executor_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ByteTokenizer> tokenizer_;
};

// Parses the command line and runs `run`; returns the exit status of the
// process. Errors are a line on stderr. Logs below warnings are off.
int RunBenchmark(CLI::App& app, int argc, char** argv,
                 const std::function<absl::Status()>& run);

// The middle one; of an even number, the greater of the two. REQUIRES: there is
// one.
double Median(std::vector<double> values);

}  // namespace folio

#endif  // BENCH_BENCH_MODEL_H_
