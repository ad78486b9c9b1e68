// Finds the text that ends a sample, while the text comes.

#ifndef RUNTIME_ENGINE_STOP_STRINGS_H_
#define RUNTIME_ENGINE_STOP_STRINGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace folio {

// The stop strings of a request, prepared. Immutable; its samples share it.
class StopStrings {
 public:
  // For each string, and each length of a prefix of it, the longest proper
  // prefix that is also a suffix of that prefix. (Knuth, Morris and Pratt,
  // "Fast Pattern Matching in Strings", 1977.)
  struct Pattern {
    std::string text;
    std::vector<int32_t> borders;
  };

  // REQUIRES: no string is empty.
  explicit StopStrings(std::span<const std::string> strings);

  std::span<const Pattern> patterns() const { return patterns_; }

 private:
  std::vector<Pattern> patterns_;
};

// Looks at the bytes of one text, one after the other, so that the result does
// not depend on how they were grouped. O(strings) a byte, amortised.
class StopMatcher {
 public:
  // `strings` must outlive the matcher.
  explicit StopMatcher(const StopStrings* strings);

  struct Match {
    size_t end;  // Bytes of this piece up to the end of the stop string.
    const std::string* stop;
  };

  // The next piece of the text. The first place where a stop string is complete
  // is a match (of several that are, the longest one), and what follows in the
  // piece is not looked at. With `may_stop` false, none is one.
  std::optional<Match> Append(std::string_view piece, bool may_stop);

  // How many of the last bytes may be the start of a stop string: whole
  // characters, where texts and strings are UTF-8.
  size_t num_withheld() const;

 private:
  bool Advance(char byte);

  const StopStrings* const strings_;
  std::vector<int32_t> matched_;  // [patterns]: bytes that match, at the end.
};

}  // namespace folio

#endif  // RUNTIME_ENGINE_STOP_STRINGS_H_
