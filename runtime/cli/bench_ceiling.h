// The least time that the steps of a load can take on this machine.

#ifndef RUNTIME_CLI_BENCH_CEILING_H_
#define RUNTIME_CLI_BENCH_CEILING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/element_type.h"
#include "runtime/base/executor.h"
#include "runtime/cli/bench_load.h"
#include "runtime/kernels/product_ceiling.h"
#include "runtime/model/decoder_config.h"

namespace folio {

// Seconds that all steps of a list take at least.
struct CeilingSeconds {
  double products = 0;
  double kv_reading = 0;
  double total() const { return products + kv_reading; }
};

// A step's ceiling is the time of its own matrix products, measured on their
// own (logits for sampled rows only), and of reading its K/V at the bandwidth
// measured. What attention computes, norms, activations and sampling count as
// nothing.
class BenchCeiling {
 public:
  // Whether products of this type can be measured on this machine.
  static bool IsPossible(ElementType weights);

  // Takes about the memory of the model's weights. REQUIRES:
  // IsPossible(weights).
  BenchCeiling(const DecoderConfig& config, ElementType weights,
               Executor* executor);

  // Measures again what these steps are made of; takes about a tenth of a
  // second, or one run, for each number of rows that occurs.
  CeilingSeconds Measure(const std::vector<BenchStep>& steps);

  // Bytes a second, as Measure found it the last time.
  double read_bandwidth() const { return read_bandwidth_; }

 private:
  ReadCeiling reading_;
  ProductCeiling products_;
  double read_bandwidth_ = 0;
};

}  // namespace folio

#endif  // RUNTIME_CLI_BENCH_CEILING_H_
