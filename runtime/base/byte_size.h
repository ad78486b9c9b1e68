// Amounts of memory as people write and read them.

#ifndef RUNTIME_BASE_BYTE_SIZE_H_
#define RUNTIME_BASE_BYTE_SIZE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace folio {

// Parses a number of bytes: digits, perhaps with a decimal fraction, followed
// by KiB, MiB, GiB, TiB (powers of 1024), KB, MB, GB, TB (powers of 1000), B or
// nothing. "4096", "256MiB", "1.5GiB". What a fraction leaves over of a byte is
// dropped. INVALID_ARGUMENT for everything else (a sign, a space, a unit in
// other letters) and for what does not fit into 63 bits.
absl::StatusOr<int64_t> ParseByteSize(std::string_view text);

// Writes `bytes` with the largest binary unit that it reaches: "256MiB" when
// that is exact, else rounded to one digit after the point ("1.2GiB",
// "256.0MiB"), so that a value without a point is always exact.
// REQUIRES: bytes >= 0.
std::string FormatByteSize(int64_t bytes);

}  // namespace folio

#endif  // RUNTIME_BASE_BYTE_SIZE_H_
