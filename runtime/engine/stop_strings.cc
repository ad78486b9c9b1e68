#include "runtime/engine/stop_strings.h"

#include <glog/logging.h>

#include <algorithm>

namespace folio {
namespace {

using Pattern = StopStrings::Pattern;

int32_t LengthOf(const Pattern& pattern) {
  return static_cast<int32_t>(pattern.text.size());
}

// How many bytes match behind `byte`, if `matched` did before it.
int32_t Next(const Pattern& pattern, int32_t matched, char byte) {
  if (matched == LengthOf(pattern)) matched = pattern.borders[matched];
  while (matched > 0 && pattern.text[matched] != byte) {
    matched = pattern.borders[matched];
  }
  return pattern.text[matched] == byte ? matched + 1 : 0;
}

}  // namespace

StopStrings::StopStrings(std::span<const std::string> strings) {
  for (const std::string& string : strings) {
    CHECK(!string.empty());
    Pattern& pattern = patterns_.emplace_back();
    pattern.text = string;
    pattern.borders = {0, 0};
    for (size_t i = 1; i < string.size(); ++i) {
      pattern.borders.push_back(
          Next(pattern, pattern.borders.back(), string[i]));
    }
  }
}

StopMatcher::StopMatcher(const StopStrings* strings)
    : strings_(strings), matched_(strings->patterns().size(), 0) {}

bool StopMatcher::Advance(char byte) {
  bool complete = false;
  for (size_t i = 0; i < matched_.size(); ++i) {
    const Pattern& pattern = strings_->patterns()[i];
    matched_[i] = Next(pattern, matched_[i], byte);
    complete |= matched_[i] == LengthOf(pattern);
  }
  return complete;
}

std::optional<StopMatcher::Match> StopMatcher::Append(std::string_view piece,
                                                      bool may_stop) {
  for (size_t i = 0; i < piece.size(); ++i) {
    if (!Advance(piece[i]) || !may_stop) continue;
    const std::string* longest = nullptr;
    for (size_t k = 0; k < matched_.size(); ++k) {
      const Pattern& pattern = strings_->patterns()[k];
      if (matched_[k] == LengthOf(pattern) &&
          (longest == nullptr || pattern.text.size() > longest->size())) {
        longest = &pattern.text;
      }
    }
    return Match{.end = i + 1, .stop = longest};
  }
  return std::nullopt;
}

// (What is complete and was no match has a shorter prefix that may still grow.)
size_t StopMatcher::num_withheld() const {
  int32_t most = 0;
  for (size_t i = 0; i < matched_.size(); ++i) {
    const Pattern& pattern = strings_->patterns()[i];
    const int32_t matched = matched_[i];
    most =
        std::max(most, matched == LengthOf(pattern) ? pattern.borders[matched]
                                                    : matched);
  }
  return static_cast<size_t>(most);
}

}  // namespace folio
