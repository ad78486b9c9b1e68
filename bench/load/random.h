// Draws that loads are made of: functions of a seed, a stream and a position,
// by runtime/base/philox.h. (The standard library's distributions differ from
// one implementation to another.)

#ifndef BENCH_LOAD_RANDOM_H_
#define BENCH_LOAD_RANDOM_H_

#include <cmath>
#include <cstdint>
#include <numbers>

#include "runtime/base/philox.h"

namespace folio {

// Uniform over (0, 1]: it has a logarithm.
inline double PositiveUniform(uint64_t seed, uint64_t stream,
                              uint64_t position) {
  return 1.0 - UniformDouble(seed, stream, position);
}

// Box and Muller, "A note on the generation of random normal deviates", 1958:
// of positions 2 * index and 2 * index + 1 of the stream.
inline double StandardNormal(uint64_t seed, uint64_t stream, uint64_t index) {
  const double u = PositiveUniform(seed, stream, 2 * index);
  const double v = UniformDouble(seed, stream, 2 * index + 1);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

// 0 ... count - 1, each as likely as the others.
inline int32_t DrawBelow(int32_t count, uint64_t seed, uint64_t stream,
                         uint64_t position) {
  return static_cast<int32_t>(UniformDouble(seed, stream, position) * count);
}

}  // namespace folio

#endif  // BENCH_LOAD_RANDOM_H_
