#include "bench/load/sweep.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace folio {
namespace {

constexpr double kMaxValues = 100;
constexpr double kMaxConcurrency = 1e6;
constexpr double kMaxLimitMs = 1e9;

absl::Status SweepError(std::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", std::string(text),
      "' is no sweep; give rate=FROM:TO:STEP or concurrency=FROM:TO:STEP, with "
      "rates from 0.001 to 100000 or whole numbers up to 1000000, FROM at "
      "most TO, STEP above 0, and at most 100 values, such as rate=1:8:0.5"));
}

absl::Status LimitError(std::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", std::string(text),
      "' is no limit; give ttft, itl, tpot or e2e, a colon and milliseconds "
      "above zero, each once, with commas between them, such as "
      "ttft:200,itl:50"));
}

}  // namespace

absl::StatusOr<Sweep> ParseSweep(std::string_view text) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(std::string(text), absl::MaxSplits('=', 1));
  const std::vector<std::string> numbers = absl::StrSplit(parts.second, ':');
  double from;
  double to;
  double step;
  if (numbers.size() != 3 || !absl::SimpleAtod(numbers[0], &from) ||
      !absl::SimpleAtod(numbers[1], &to) ||
      !absl::SimpleAtod(numbers[2], &step) || !(from > 0) || !(step > 0) ||
      !(to >= from) || !std::isfinite(to) || !std::isfinite(step)) {
    return SweepError(text);
  }
  // (With room for what steps such as 0.1 lack.)
  const double count = std::floor((to - from) / step + 1e-9) + 1;
  if (count > kMaxValues) return SweepError(text);
  Sweep sweep;
  if (parts.first == "concurrency") {
    sweep.variable = Sweep::Variable::kConcurrency;
    const auto is_whole = [](double number) {
      return number == std::floor(number);
    };
    if (!is_whole(from) || !is_whole(to) || !is_whole(step) ||
        to > kMaxConcurrency) {
      return SweepError(text);
    }
  } else if (parts.first != "rate" || from < kMinRate || to > kMaxRate) {
    return SweepError(text);
  }
  for (int i = 0; i < count; ++i) sweep.values.push_back(from + i * step);
  return sweep;
}

absl::StatusOr<LatencyLimits> ParseLimits(std::string_view text) {
  LatencyLimits limits;
  for (const std::string& part :
       std::vector<std::string>(absl::StrSplit(std::string(text), ','))) {
    const std::pair<std::string, std::string> limit =
        absl::StrSplit(part, absl::MaxSplits(':', 1));
    std::optional<absl::Duration>* const place =
        limit.first == "ttft"   ? &limits.ttft
        : limit.first == "itl"  ? &limits.itl
        : limit.first == "tpot" ? &limits.tpot
        : limit.first == "e2e"  ? &limits.e2e
                                : nullptr;
    double ms;
    if (place == nullptr || place->has_value() ||
        !absl::SimpleAtod(limit.second, &ms) || !(ms > 0) || ms > kMaxLimitMs) {
      return LimitError(part);
    }
    *place = absl::Milliseconds(ms);
  }
  return limits;
}

bool MeetsLimits(const LoadMetrics& metrics, double share) {
  // (With room for what products such as 0.55 * 100 have too much.)
  const auto requests = static_cast<double>(metrics.requests);
  return static_cast<double>(metrics.good) >= (share - 1e-9) * requests;
}

}  // namespace folio
