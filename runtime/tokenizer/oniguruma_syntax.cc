#include "runtime/tokenizer/oniguruma_syntax.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

// The characters of \w, as the inside of a class.
constexpr char kWord[] = "\\p{Alphabetic}\\p{M}\\p{N}\\p{Pc}";

// Escapes that mean the same in both dialects.
constexpr std::string_view kSharedEscapes = "dDpPtnrfaexAzZGRX123456789";

bool IsAsciiLetterOrDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
         (c >= 'a' && c <= 'z');
}

class Translator {
 public:
  explicit Translator(std::string_view regex) : rest_(regex) {}

  absl::StatusOr<std::string> Run() {
    while (!rest_.empty()) {
      if (rest_.front() == '\\') {
        FOLIO_RETURN_IF_ERROR(Escape());
      } else if (in_class_) {
        FOLIO_RETURN_IF_ERROR(InsideClass());
      } else {
        FOLIO_RETURN_IF_ERROR(OutsideClass());
      }
    }
    return std::move(result_);
  }

 private:
  void Take(size_t count) {
    result_ += rest_.substr(0, count);
    rest_.remove_prefix(count);
  }

  static absl::Status Unsupported(std::string_view construct) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", std::string(construct), "' is not supported in patterns"));
  }

  absl::Status Escape() {
    if (rest_.size() == 1) return Unsupported("a \\ at the end");
    const char c = rest_[1];
    if (!IsAsciiLetterOrDigit(c) ||
        kSharedEscapes.find(c) != kSharedEscapes.npos ||
        (c == 'b' && in_class_)) {
      // \p{L} and \x{41} whole: their braces are no repetition.
      const bool has_braces = (c == 'p' || c == 'P' || c == 'x') &&
                              rest_.substr(2).starts_with('{');
      Take(has_braces ? std::min(rest_.find('}'), rest_.size() - 1) + 1 : 2);
      return absl::OkStatus();
    }
    if (c == 'u' && rest_.size() >= 6) {
      absl::StrAppend(&result_, "\\x{", std::string(rest_.substr(2, 4)), "}");
      rest_.remove_prefix(6);
      return absl::OkStatus();
    }
    const std::string word = absl::StrCat("[", kWord, "]");
    if (c == 's' || c == 'S') {
      // PCRE2's own \s has U+180E, which Unicode no longer calls white space.
      result_ += c == 's' ? "\\p{wspace}" : "\\P{wspace}";
    } else if (c == 'w') {
      result_ += in_class_ ? kWord : word;
    } else if (c == 'W' && !in_class_) {
      absl::StrAppend(&result_, "[^", kWord, "]");
    } else if (c == 'b') {
      absl::StrAppend(&result_, "(?:(?<=", word, ")(?!", word, ")|(?<!", word,
                      ")(?=", word, "))");
    } else if (c == 'B' && !in_class_) {
      absl::StrAppend(&result_, "(?:(?<=", word, ")(?=", word, ")|(?<!", word,
                      ")(?!", word, "))");
    } else {
      return Unsupported(absl::StrCat("\\", std::string(1, c),
                                      in_class_ ? " in brackets" : ""));
    }
    rest_.remove_prefix(2);
    return absl::OkStatus();
  }

  absl::Status InsideClass() {
    // Sets of sets, which PCRE2 takes for these characters themselves.
    if (rest_.front() == '[') return Unsupported("[ in brackets");
    if (rest_.starts_with("&&")) return Unsupported("&& in brackets");
    in_class_ = rest_.front() != ']';
    Take(1);
    return absl::OkStatus();
  }

  absl::Status OutsideClass() {
    if (rest_.front() == '[') {
      in_class_ = true;
      Take(rest_.starts_with("[^") ? 2 : 1);
      if (rest_.starts_with(']')) return Unsupported("an empty []");
      return absl::OkStatus();
    }
    if (rest_.starts_with("(*")) return Unsupported("(*");
    if (rest_.starts_with("{,")) return Unsupported("{,");
    // There a repetition of a repetition, here one that doesn't backtrack.
    if (rest_.starts_with("}+")) return Unsupported("}+");
    if (rest_.starts_with("(?")) return Group();
    Take(1);
    return absl::OkStatus();
  }

  absl::Status Group() {
    for (const std::string_view start :
         {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i)",
          "(?-i:", "(?-i)"}) {
      if (!rest_.starts_with(start)) continue;
      Take(start.size());
      return absl::OkStatus();
    }
    return Unsupported(rest_.substr(0, 3));
  }

  std::string_view rest_;
  std::string result_;
  bool in_class_ = false;
};

}  // namespace

absl::StatusOr<std::string> TranslateOniguruma(std::string_view regex) {
  return Translator(regex).Run();
}

}  // namespace folio
