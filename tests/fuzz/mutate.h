// Damages bytes, the same way each time.

#ifndef TESTS_FUZZ_MUTATE_H_
#define TESTS_FUZZ_MUTATE_H_

#include <cstdint>
#include <string>

namespace folio {

// `bytes` after one to four random changes: bits flipped, bytes replaced,
// inserted, taken out or repeated, the end cut off, or a number replaced by one
// that breaks sums (0, -1, 2^31, 2^63, ...). A function of its arguments.
std::string Mutated(std::string bytes, uint64_t seed);

}  // namespace folio

#endif  // TESTS_FUZZ_MUTATE_H_
