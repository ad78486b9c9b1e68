// When the requests of a load arrive.

#ifndef BENCH_LOAD_ARRIVALS_H_
#define BENCH_LOAD_ARRIVALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace folio {

// The first request arrives at 0; the process says what the gaps between one
// and the next are. Its mean is 1 / rate, except for kAtOnce.
struct Arrivals {
  enum class Process {
    kAtOnce,    // None.
    kConstant,  // 1 / rate.
    kPoisson,   // Exponentially distributed: density rate * exp(-rate * gap).
    // Gamma distributed with shape `burstiness` and scale
    // 1 / (rate * burstiness), as with --burstiness of vLLM's benchmark:
    //
    //   density  gap^(shape - 1) * exp(-gap / scale)
    //            / (Gamma(shape) * scale^shape)
    //   standard deviation / mean = 1 / sqrt(burstiness)
    //
    // 1: the Poisson process; less: burstier; more: more even.
    kGamma,
  };
  Process process = Process::kAtOnce;
  double rate = 1;        // Requests a second, > 0; not of kAtOnce.
  double burstiness = 1;  // > 0; of kGamma alone.
};

// All draws are from this stream of the seed.
inline constexpr uint64_t kArrivalStream = 2;

// Ascending. A function of the arguments alone; those of a smaller count are
// the first of those of a larger one.
std::vector<absl::Duration> DrawArrivals(const Arrivals& arrivals,
                                         int32_t count, uint64_t seed);

// For people: "at once", "at 4 a second (Poisson)".
std::string Describe(const Arrivals& arrivals);

}  // namespace folio

#endif  // BENCH_LOAD_ARRIVALS_H_
