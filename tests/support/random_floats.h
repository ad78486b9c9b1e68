// Test data that is a function of a seed.

#ifndef TESTS_SUPPORT_RANDOM_FLOATS_H_
#define TESTS_SUPPORT_RANDOM_FLOATS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/base/philox.h"

namespace folio {

// `count` numbers, uniform in [-half_width, half_width].
inline std::vector<float> RandomFloats(uint64_t seed, size_t count,
                                       float half_width) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] =
        static_cast<float>(half_width * (2 * UniformDouble(seed, 0, i) - 1));
  }
  return values;
}

}  // namespace folio

#endif  // TESTS_SUPPORT_RANDOM_FLOATS_H_
