// Random numbers without state: a function of a key and a counter.

#ifndef RUNTIME_BASE_PHILOX_H_
#define RUNTIME_BASE_PHILOX_H_

#include <array>
#include <cstdint>

namespace folio {

using PhiloxKey = std::array<uint32_t, 2>;
using PhiloxBlock = std::array<uint32_t, 4>;

// Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011. A bijection of counters for each key, whose outputs
// for different keys or counters are independent for all practical purposes.
// Words are in the order of the reference implementation, Random123.
constexpr PhiloxBlock Philox4x32(PhiloxKey key, PhiloxBlock counter) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;  // The golden ratio.
    key[1] += 0xBB67AE85;  // sqrt(3) - 1.
  }
  return counter;
}

// The random block at `position` of stream `stream` of `seed`.
constexpr PhiloxBlock PhiloxAt(uint64_t seed, uint64_t stream,
                               uint64_t position) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  return Philox4x32({low(seed), high(seed)},
                    {low(position), high(position), low(stream), high(stream)});
}

// Uniform over the 2^53 multiples of 2^-53 in [0, 1): every one is a double.
constexpr double UniformDouble(uint64_t seed, uint64_t stream,
                               uint64_t position) {
  const PhiloxBlock block = PhiloxAt(seed, stream, position);
  const uint64_t bits = uint64_t{block[0]} << 32 | block[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace folio

#endif  // RUNTIME_BASE_PHILOX_H_
