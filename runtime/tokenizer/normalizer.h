// What is done to text before it is cut into pieces.

#ifndef RUNTIME_TOKENIZER_NORMALIZER_H_
#define RUNTIME_TOKENIZER_NORMALIZER_H_

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/tokenizer/pattern.h"

namespace folio {

// The normalisation forms of Unicode Standard Annex #15.
struct UnicodeForm {
  bool compatibility = false;  // NFKC and NFKD, not NFC and NFD.
  bool compose = true;         // NFC and NFKC, not NFD and NFKD.
};

// Puts `prefix` before a text that isn't empty.
struct Prepend {
  std::string prefix;
};

// Puts `content`, as it is, in the place of each match.
struct Replace {
  Pattern pattern;
  std::string content;
};

// Each character's full lower case, whatever stands beside it.
struct Lowercase {};

using NormalizerStep = std::variant<UnicodeForm, Prepend, Replace, Lowercase>;

// Steps that are done one after another. Immutable, thread-safe.
class Normalizer {
 public:
  Normalizer() = default;
  explicit Normalizer(std::vector<NormalizerStep> steps)
      : steps_(std::move(steps)) {}

  bool changes_nothing() const { return steps_.empty(); }

  // O(n log n) at most, save what patterns take. The status is that of
  // Pattern::ForEachMatch. REQUIRES: `text` is valid UTF-8; so is the result.
  absl::StatusOr<std::string> Apply(std::string_view text) const;

 private:
  std::vector<NormalizerStep> steps_;
};

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_NORMALIZER_H_
