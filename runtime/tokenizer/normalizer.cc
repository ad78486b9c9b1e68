#include "runtime/tokenizer/normalizer.h"

#include <glog/logging.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/code_points.h"

namespace folio {
namespace {

bool IsAscii(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

// The most code points that one decomposes into (U+FDFA has 18).
constexpr size_t kMaxDecomposition = 18;

// The code points of `text`, each decomposed, in canonical order.
std::vector<utf8proc_int32_t> Decompose(std::string_view text,
                                        utf8proc_option_t options) {
  std::vector<utf8proc_int32_t> decomposed;
  decomposed.reserve(text.size());
  while (!text.empty()) {
    const CodePoint front = FrontCodePoint(text);
    std::array<utf8proc_int32_t, kMaxDecomposition> parts;
    const utf8proc_ssize_t length = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(front.value), parts.data(), parts.size(),
        options, /*last_boundclass=*/nullptr);
    CHECK(length >= 0 && static_cast<size_t>(length) <= parts.size())
        << "U+" << std::hex << front.value << " decomposes into " << std::dec
        << length << " code points";
    decomposed.insert(decomposed.end(), parts.begin(), parts.begin() + length);
    text.remove_prefix(front.length);
  }
  // The library's own function for whole strings orders marks in quadratic
  // time.
  const auto order = [](utf8proc_int32_t code_point) {
    return utf8proc_get_property(code_point)->combining_class;
  };
  for (auto begin = decomposed.begin(); begin != decomposed.end();) {
    begin = std::find_if(begin, decomposed.end(), order);
    const auto end = std::find_if_not(begin, decomposed.end(), order);
    std::stable_sort(begin, end, [order](auto left, auto right) {
      return order(left) < order(right);
    });
    begin = end;
  }
  return decomposed;
}

std::string ToUnicodeForm(std::string_view text, const UnicodeForm& form) {
  if (IsAscii(text)) return std::string(text);  // It is in every form.
  int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
  if (form.compatibility) options |= UTF8PROC_COMPAT;
  std::vector<utf8proc_int32_t> code_points =
      Decompose(text, static_cast<utf8proc_option_t>(options));
  if (form.compose) {
    const utf8proc_ssize_t length = utf8proc_normalize_utf32(
        code_points.data(), static_cast<utf8proc_ssize_t>(code_points.size()),
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    CHECK(length >= 0) << utf8proc_errmsg(length);
    code_points.resize(length);
  }
  std::string result;
  result.reserve(text.size());
  for (const utf8proc_int32_t code_point : code_points) {
    AppendUtf8(static_cast<uint32_t>(code_point), result);
  }
  return result;
}

std::string ToLowercase(std::string_view text) {
  // The only character whose lower case is two (Unicode's SpecialCasing.txt).
  constexpr uint32_t kDottedCapitalI = 0x130;
  constexpr std::string_view kDottedSmallI = "i\u0307";
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const CodePoint front = FrontCodePoint(text);
    if (front.value == kDottedCapitalI) {
      result += kDottedSmallI;
    } else {
      AppendUtf8(static_cast<uint32_t>(utf8proc_tolower(
                     static_cast<utf8proc_int32_t>(front.value))),
                 result);
    }
    text.remove_prefix(front.length);
  }
  return result;
}

absl::StatusOr<std::string> ReplaceAll(std::string_view text,
                                       const Replace& replace) {
  std::string result;
  size_t done = 0;
  FOLIO_RETURN_IF_ERROR(
      replace.pattern.ForEachMatch(text, [&](size_t begin, size_t end) {
        result += text.substr(done, begin - done);
        result += replace.content;
        done = end;
        return absl::OkStatus();
      }));
  result += text.substr(done);
  return result;
}

absl::StatusOr<std::string> ApplyStep(std::string_view text,
                                      const NormalizerStep& step) {
  if (const auto* form = std::get_if<UnicodeForm>(&step)) {
    return ToUnicodeForm(text, *form);
  }
  if (const auto* prepend = std::get_if<Prepend>(&step)) {
    return text.empty() ? "" : prepend->prefix + std::string(text);
  }
  if (const auto* replace = std::get_if<Replace>(&step)) {
    return ReplaceAll(text, *replace);
  }
  return ToLowercase(text);
}

}  // namespace

absl::StatusOr<std::string> Normalizer::Apply(std::string_view text) const {
  std::string result(text);
  for (const NormalizerStep& step : steps_) {
    FOLIO_ASSIGN_OR_RETURN(result, ApplyStep(result, step));
  }
  return result;
}

}  // namespace folio
