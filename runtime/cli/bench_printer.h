// What `folio bench` prints.

#ifndef RUNTIME_CLI_BENCH_PRINTER_H_
#define RUNTIME_CLI_BENCH_PRINTER_H_

#include <cstdint>
#include <vector>

#include "runtime/cli/bench_ceiling.h"
#include "runtime/cli/bench_load.h"
#include "runtime/model/model.h"

namespace folio {

// One number of each round.
using Rounds = std::vector<double>;

// The loads of one number of streams.
struct BenchResult {
  // One more load. Phases without a ceiling add none.
  void AddRound(const BenchLoad& load, const PhaseCeiling& prefill,
                const PhaseCeiling& decode, bool has_ceiling);

  Rounds prefill_rate;  // Tokens a second.
  Rounds decode_rate;
  Rounds outside_share;  // Of the decode steps' time.
  Rounds outside_us;     // A decode step.
  int64_t decode_steps = 0;

  // Of the ceiling; empty without one.
  Rounds prefill_share;
  Rounds decode_share;
  Rounds read_bandwidth;  // Bytes a second.
  Rounds attention_bandwidth;
};

class BenchPrinter {
 public:
  BenchPrinter(bool json, int32_t threads, const ModelInfo& model)
      : json_(json), threads_(threads), model_(model) {}

  void PrintHeader(const BenchLoad& load) const;
  // Medians; the ceiling is the rate's by the share's.
  void Print(const BenchLoad& load, const BenchResult& result) const;

 private:
  const bool json_;
  const int32_t threads_;
  const ModelInfo& model_;
};

}  // namespace folio

#endif  // RUNTIME_CLI_BENCH_PRINTER_H_
