#include "bench/load/lengths.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/load/load.h"
#include "bench/load/random.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

constexpr std::string_view kUniform = "uniform:";
constexpr std::string_view kLogNormal = "lognormal:";

// The shortest decimal number that is this one: StrCat has six digits.
std::string Exact(double value) {
  char buffer[32];
  return std::string(buffer,
                     std::to_chars(buffer, std::end(buffer), value).ptr);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<Length> Parse() const {
    if (text_.starts_with(kUniform)) {
      return ParseUniform(text_.substr(kUniform.size()));
    }
    if (text_.starts_with(kLogNormal)) {
      return ParseLogNormal(text_.substr(kLogNormal.size()));
    }
    FOLIO_ASSIGN_OR_RETURN(const int32_t length, Tokens("it", text_));
    return FixedLength{length};
  }

 private:
  absl::StatusOr<Length> ParseUniform(std::string_view rest) const {
    const size_t dash = rest.find('-');
    if (dash == rest.npos) return Error("there is no '-' in it");
    UniformLength length;
    FOLIO_ASSIGN_OR_RETURN(length.least,
                           Tokens("the least", rest.substr(0, dash)));
    FOLIO_ASSIGN_OR_RETURN(length.most,
                           Tokens("the most", rest.substr(dash + 1)));
    if (length.least > length.most) {
      return Error(absl::StrCat("the least, ", length.least,
                                ", is more than the most, ", length.most));
    }
    return length;
  }

  absl::StatusOr<Length> ParseLogNormal(std::string_view rest) const {
    if (std::ranges::count(rest, ',') != 2) {
      return Error("there are not three numbers in it");
    }
    const size_t first = rest.find(',');
    const size_t second = rest.find(',', first + 1);
    LogNormalLength length;
    FOLIO_ASSIGN_OR_RETURN(length.median,
                           Number<double>("the median", rest.substr(0, first),
                                          /*least=*/1, kMaxTokens));
    FOLIO_ASSIGN_OR_RETURN(
        length.sigma,
        Number<double>("sigma", rest.substr(first + 1, second - first - 1),
                       /*least=*/0, /*most=*/10));
    FOLIO_ASSIGN_OR_RETURN(length.most,
                           Tokens("the most", rest.substr(second + 1)));
    return length;
  }

  absl::StatusOr<int32_t> Tokens(std::string_view name,
                                 std::string_view digits) const {
    return Number<int32_t>(name, digits, 1, kMaxTokens);
  }

  template <typename T>
  absl::StatusOr<T> Number(std::string_view name, std::string_view digits,
                           T least, T most) const {
    T value{};
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value);
    // The comparisons are false for a NaN.
    if (error == std::errc() && stop == end && value >= least &&
        value <= most) {
      return value;
    }
    const char* const kind = std::is_integral_v<T> ? "whole number" : "number";
    return Error(absl::StrCat(std::string(name), " must be a ", kind, " from ",
                              Exact(least), " to ", Exact(most)));
  }

  absl::Status Error(std::string_view reason) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", std::string(text_), "\" is not a length: ", std::string(reason),
        ". A length is a number (128), uniform:LEAST-MOST (uniform:10-200), or "
        "lognormal:MEDIAN,SIGMA,MOST (lognormal:200,0.9,2000)"));
  }

  const std::string_view text_;
};

int32_t Draw(const FixedLength& length, uint64_t, uint64_t, uint64_t) {
  return length.length;
}

int32_t Draw(const UniformLength& length, uint64_t seed, uint64_t stream,
             uint64_t index) {
  const double count = double{1} + length.most - length.least;
  return length.least +
         static_cast<int32_t>(UniformDouble(seed, stream, index) * count);
}

int32_t Draw(const LogNormalLength& length, uint64_t seed, uint64_t stream,
             uint64_t index) {
  const double tokens =
      length.median *
      std::exp(length.sigma * StandardNormal(seed, stream, index));
  return static_cast<int32_t>(
      std::clamp(std::round(tokens), 1.0, static_cast<double>(length.most)));
}

std::string Text(const FixedLength& length) {
  return absl::StrCat(length.length);
}

std::string Text(const UniformLength& length) {
  return absl::StrCat(std::string(kUniform), length.least, "-", length.most);
}

std::string Text(const LogNormalLength& length) {
  return absl::StrCat(std::string(kLogNormal), Exact(length.median), ",",
                      Exact(length.sigma), ",", length.most);
}

std::string Words(const FixedLength& length) { return Text(length); }

std::string Words(const UniformLength& length) {
  return absl::StrCat(length.least, " to ", length.most);
}

std::string Words(const LogNormalLength& length) {
  return absl::StrCat("log-normal, median ", length.median, ", sigma ",
                      length.sigma, ", at most ", length.most);
}

}  // namespace

int32_t DrawLength(const Length& length, uint64_t seed, uint64_t stream,
                   uint64_t index) {
  return std::visit(
      [&](const auto& kind) { return Draw(kind, seed, stream, index); },
      length);
}

absl::StatusOr<Length> ParseLength(std::string_view text) {
  return Parser(text).Parse();
}

std::string ToString(const Length& length) {
  return std::visit([](const auto& kind) { return Text(kind); }, length);
}

std::string Describe(const Length& length) {
  return std::visit([](const auto& kind) { return Words(kind); }, length);
}

}  // namespace folio
