#include "runtime/base/byte_size.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kKB = 1000;

struct Unit {
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<Unit, 10> kUnits = {{{"", 1},
                                          {"B", 1},
                                          {"KiB", kKiB},
                                          {"MiB", kKiB* kKiB},
                                          {"GiB", kKiB* kKiB* kKiB},
                                          {"TiB", kKiB* kKiB* kKiB* kKiB},
                                          {"KB", kKB},
                                          {"MB", kKB* kKB},
                                          {"GB", kKB* kKB* kKB},
                                          {"TB", kKB* kKB* kKB* kKB}}};

// The units that FormatByteSize uses, largest first.
constexpr std::array<Unit, 4> kBinaryUnits = {
    {kUnits[5], kUnits[4], kUnits[3], kUnits[2]}};

// More digits than this would overflow the 128 bits of the arithmetic below,
// and none of them could change a whole byte of any sensible size.
constexpr size_t kMaxDigits = 19;
constexpr size_t kMaxFractionDigits = 18;

absl::Status Refuse(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", std::string(text), "' is not a size: ", std::string(why),
      "; write a number and perhaps a unit out of B, KiB, MiB, GiB, TiB, KB, "
      "MB, GB, TB, as in 4096, 256MiB or 1.5GiB"));
}

// Takes the digits off the front of `rest`.
std::string_view TakeDigits(std::string_view& rest) {
  const size_t end =
      std::min(rest.find_first_not_of("0123456789"), rest.size());
  const std::string_view digits = rest.substr(0, end);
  rest.remove_prefix(end);
  return digits;
}

// REQUIRES: `digits` holds at most kMaxDigits decimal digits.
absl::uint128 ToNumber(std::string_view digits) {
  absl::uint128 value = 0;
  for (const char digit : digits) value = value * 10 + (digit - '0');
  return value;
}

std::optional<Unit> FindUnit(std::string_view name) {
  const auto* it = std::ranges::find(kUnits, name, &Unit::name);
  if (it == kUnits.end()) return std::nullopt;
  return *it;
}

}  // namespace

absl::StatusOr<int64_t> ParseByteSize(std::string_view text) {
  std::string_view rest = text;
  std::string_view whole = TakeDigits(rest);
  if (whole.empty()) return Refuse(text, "it does not start with a digit");
  whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));

  std::string_view fraction;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    fraction = TakeDigits(rest);
    if (fraction.empty()) return Refuse(text, "no digit follows the point");
    if (fraction.size() > kMaxFractionDigits) {
      return Refuse(text, "it has more than 18 digits after the point");
    }
  }

  const std::optional<Unit> unit = FindUnit(rest);
  if (!unit.has_value()) {
    return Refuse(text, absl::StrCat("it has the unknown unit '",
                                     std::string(rest), "'"));
  }
  if (!fraction.empty() && unit->bytes == 1) {
    return Refuse(text, "it asks for a fraction of a byte");
  }

  if (whole.size() > kMaxDigits) return Refuse(text, "it is too large");
  absl::uint128 scale = 1;
  for (size_t i = 0; i < fraction.size(); ++i) scale *= 10;
  const absl::uint128 bytes =
      ToNumber(whole) * unit->bytes + ToNumber(fraction) * unit->bytes / scale;
  if (bytes > std::numeric_limits<int64_t>::max()) {
    return Refuse(text, "it is too large");
  }
  return static_cast<int64_t>(bytes);
}

std::string FormatByteSize(int64_t bytes) {
  CHECK_GE(bytes, 0);
  for (size_t i = 0; i < kBinaryUnits.size(); ++i) {
    const Unit& unit = kBinaryUnits[i];
    if (bytes % unit.bytes == 0 && bytes > 0) {
      return absl::StrCat(bytes / unit.bytes, std::string(unit.name));
    }
    // From here on, rounding lifts a value up to this unit: 1023.96KiB would
    // read 1024.0KiB, and reads 1.0MiB. (A twentieth of the next unit below.)
    if (bytes < unit.bytes - unit.bytes / (20 * kKiB)) continue;
    const int64_t tenths =
        bytes / unit.bytes * 10 +
        (bytes % unit.bytes * 10 + unit.bytes / 2) / unit.bytes;
    return absl::StrCat(tenths / 10, ".", tenths % 10, std::string(unit.name));
  }
  return absl::StrCat(bytes, "B");
}

}  // namespace folio
