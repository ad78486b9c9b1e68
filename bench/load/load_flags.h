// The command line of `folio-load`.

#ifndef BENCH_LOAD_LOAD_FLAGS_H_
#define BENCH_LOAD_LOAD_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/load/lengths.h"
#include "bench/load/metrics.h"
#include "bench/load/open_target.h"
#include "bench/load/sweep.h"
#include "bench/load/synthetic.h"

namespace folio {

struct LoadFlags {
  TargetFlags target;
  const CLI::App* engine = nullptr;  // Where the flags of inproc: are.

  std::string trace;        // Empty: `synthetic`.
  SyntheticLoad synthetic;  // But for what the next ones say.
  // None: those of `synthetic`, as far as the target's context allows.
  std::optional<Length> prompt;
  std::optional<Length> output;
  std::optional<uint64_t> seed;
  std::optional<int32_t> vocab_size;

  std::optional<double> rate;
  std::optional<double> burstiness;
  bool constant = false;
  int32_t concurrency = 0;  // 0: an open loop.
  std::optional<Sweep> sweep;

  LatencyLimits limits;
  bool has_limits = false;
  double goodput_share = 0.9;

  std::string name;
  std::string json;  // Paths; empty: not written.
  std::string report;
  std::string write_trace;
  std::vector<std::string> compare;

  std::string command;  // As it was typed.
};

// Adds all flags to `app`. Flags that do not go together are errors of its
// parsing. `flags` must outlive it.
void AddLoadFlags(CLI::App& app, LoadFlags& flags);

}  // namespace folio

#endif  // BENCH_LOAD_LOAD_FLAGS_H_
