// How long the prompts and outputs of a load are.

#ifndef BENCH_LOAD_LENGTHS_H_
#define BENCH_LOAD_LENGTHS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"

namespace folio {

struct FixedLength {
  int32_t length = 1;  // >= 1

  friend bool operator==(const FixedLength&, const FixedLength&) = default;
};

// Each length from `least` to `most` is as likely as the others.
struct UniformLength {
  int32_t least = 1;  // >= 1
  int32_t most = 1;   // >= least

  friend bool operator==(const UniformLength&, const UniformLength&) = default;
};

// Its logarithm is normally distributed; rounded to the nearest.
struct LogNormalLength {
  double median = 1;  // >= 1
  double sigma = 0;   // Of the logarithm; from 0 to 10.
  int32_t most = 1;   // >= 1; longer ones are cut to this, shorter than 1 to 1.

  friend bool operator==(const LogNormalLength&,
                         const LogNormalLength&) = default;
};

using Length = std::variant<FixedLength, UniformLength, LogNormalLength>;

// At least 1; a function of the arguments alone. Uses positions 2 * index and
// 2 * index + 1 of the stream of the seed, at most.
int32_t DrawLength(const Length& length, uint64_t seed, uint64_t stream,
                   uint64_t index);

// The text form: "128", "uniform:10-200" (least and most), or
// "lognormal:200,0.9,2000" (median, sigma and most). INVALID_ARGUMENT says what
// of it is wrong, and what is allowed.
absl::StatusOr<Length> ParseLength(std::string_view text);

// What ParseLength reads as this very length.
std::string ToString(const Length& length);

// For people: "10 to 200".
std::string Describe(const Length& length);

}  // namespace folio

#endif  // BENCH_LOAD_LENGTHS_H_
