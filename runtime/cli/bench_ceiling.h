// The least time that the steps of a load can take on this machine.

#ifndef RUNTIME_CLI_BENCH_CEILING_H_
#define RUNTIME_CLI_BENCH_CEILING_H_

#include <cstdint>
#include <vector>

#include "runtime/base/element_type.h"
#include "runtime/base/executor.h"
#include "runtime/cli/bench_load.h"
#include "runtime/kernels/product_ceiling.h"
#include "runtime/model/decoder_config.h"

namespace folio {

// Seconds that a step, or several, take at least.
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

  // Runs once what the step is made of.
  CeilingSeconds Measure(const BenchStep& step);

  // Bytes a second, as Measure found it the last time.
  double read_bandwidth() const { return read_bandwidth_; }

 private:
  ReadCeiling reading_;
  ProductCeiling products_;
  double read_bandwidth_ = 0;
};

// The steps of a phase, and the ceiling of some of them: each is measured right
// after its step, so that both have the same share of a machine on which other
// work comes and goes.
class PhaseCeiling {
 public:
  // Measures nothing if `ceiling` is null.
  explicit PhaseCeiling(BenchCeiling* ceiling) : ceiling_(ceiling) {}

  // Measures the first step's ceiling, and others' as long as that takes no
  // longer in all than the steps do.
  void After(const BenchStep& step);

  // Of all steps.
  int64_t num_steps() const { return num_steps_; }
  int64_t rows() const { return rows_; }
  double seconds() const { return seconds_; }
  double outside_seconds() const { return outside_seconds_; }

  // Medians of the steps whose ceiling was measured, each step counting as
  // often as it has rows: a step that was interrupted says little.
  // REQUIRES: there is one.
  double share() const { return MedianOf(shares_); }
  // Bytes of K/V a second in the time that the products leave: attention reads
  // at least that fast, for norms and all else are in that time, too.
  double attention_bandwidth() const { return MedianOf(attention_); }
  double read_bandwidth() const { return ceiling_->read_bandwidth(); }

 private:
  struct Weighted {
    double value;
    int64_t weight;
  };
  static double MedianOf(std::vector<Weighted> numbers);

  BenchCeiling* const ceiling_;
  int64_t num_steps_ = 0;
  int64_t rows_ = 0;
  double seconds_ = 0;
  double outside_seconds_ = 0;
  double measuring_seconds_ = 0;
  std::vector<Weighted> shares_;
  std::vector<Weighted> attention_;
};

}  // namespace folio

#endif  // RUNTIME_CLI_BENCH_CEILING_H_
