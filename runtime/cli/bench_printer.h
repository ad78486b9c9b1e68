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
  // Measures the ceiling of the load's steps, unless `ceiling` is null.
  void AddRound(const BenchLoad& load, const BenchSteps& steps,
                BenchCeiling* ceiling);

  Rounds prefill_rate;  // Tokens a second.
  Rounds decode_rate;
  Rounds outside_share;  // Of the decode steps' time.
  Rounds outside_us;     // A decode step.
  int64_t decode_steps = 0;

  // The same where nothing is lost; empty without a ceiling.
  Rounds prefill_ceiling;
  Rounds decode_ceiling;
  Rounds read_bandwidth;  // Bytes a second.
  // K/V read by decode steps, by what their time exceeds their products': at
  // least so fast is attention, for norms and all else is in that time, too.
  Rounds attention_bandwidth;
};

class BenchPrinter {
 public:
  BenchPrinter(bool json, int32_t threads, const ModelInfo& model)
      : json_(json), threads_(threads), model_(model) {}

  void PrintHeader(const BenchLoad& load) const;
  // Medians; a share is the quotient of two.
  void Print(const BenchLoad& load, const BenchResult& result) const;

 private:
  const bool json_;
  const int32_t threads_;
  const ModelInfo& model_;
};

}  // namespace folio

#endif  // RUNTIME_CLI_BENCH_PRINTER_H_
