#include "bench/load/arrivals.h"

#include <glog/logging.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "bench/load/random.h"

namespace folio {
namespace {

// Draws gaps, in seconds. Each is a function of its index.
class Process {
 public:
  Process(const Arrivals& arrivals, uint64_t seed)
      : arrivals_(arrivals), seed_(seed) {}

  double Gap(uint64_t index) const {
    switch (arrivals_.process) {
      case Arrivals::Process::kAtOnce:
        return 0;
      case Arrivals::Process::kConstant:
        return 1 / arrivals_.rate;
      case Arrivals::Process::kPoisson:
        return -std::log(PositiveUniform(seed_, kArrivalStream, index)) /
               arrivals_.rate;
      case Arrivals::Process::kGamma:
        return StandardGamma(index) / (arrivals_.rate * arrivals_.burstiness);
    }
    LOG(FATAL) << "no process";
  }

 private:
  // Gamma distributed with shape `burstiness` and scale 1. Marsaglia and Tsang,
  // "A simple method for generating gamma variables", 2000: a normal variable
  // is cubed, and rejected at times, a few percent of them. It needs a shape of
  // at least 1: a smaller one is that of shape + 1 times U^(1 / shape).
  double StandardGamma(uint64_t index) const {
    const bool raised = arrivals_.burstiness < 1;
    const double d = arrivals_.burstiness + (raised ? 1 : 0) - 1.0 / 3;
    const double c = 1 / std::sqrt(9 * d);
    // As many positions for each gap as no loop will ever need.
    const uint64_t first = index << 20;
    const double factor =
        raised
            ? std::exp(std::log(PositiveUniform(seed_, kArrivalStream, first)) /
                       arrivals_.burstiness)
            : 1.0;
    for (uint64_t position = first + 4;; position += 4) {
      // Of positions `position` and the one after it.
      const double x = StandardNormal(seed_, kArrivalStream, position / 2);
      const double v = std::pow(1 + c * x, 3);
      if (v <= 0) continue;
      const double u = PositiveUniform(seed_, kArrivalStream, position + 2);
      if (std::log(u) < x * x / 2 + d * (1 - v + std::log(v))) {
        return d * v * factor;
      }
    }
  }

  const Arrivals& arrivals_;
  const uint64_t seed_;
};

}  // namespace

std::vector<absl::Duration> DrawArrivals(const Arrivals& arrivals,
                                         int32_t count, uint64_t seed) {
  CHECK_GT(arrivals.rate, 0);
  CHECK_GT(arrivals.burstiness, 0);
  const Process process(arrivals, seed);
  std::vector<absl::Duration> times;
  times.reserve(count);
  absl::Duration time;
  for (int32_t i = 0; i < count; ++i) {
    times.push_back(time);
    time += absl::Seconds(process.Gap(i));
  }
  return times;
}

std::string Describe(const Arrivals& arrivals) {
  switch (arrivals.process) {
    case Arrivals::Process::kAtOnce:
      return "at once";
    case Arrivals::Process::kConstant:
      return absl::StrCat("at ", arrivals.rate, " a second (evenly)");
    case Arrivals::Process::kPoisson:
      return absl::StrCat("at ", arrivals.rate, " a second (Poisson)");
    case Arrivals::Process::kGamma:
      return absl::StrCat("at ", arrivals.rate, " a second (gamma, burstiness ",
                          arrivals.burstiness, ")");
  }
  LOG(FATAL) << "no process";
}

}  // namespace folio
