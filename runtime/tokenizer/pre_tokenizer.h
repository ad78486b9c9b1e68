// How text is cut into the pieces that tokens never cross.

#ifndef RUNTIME_TOKENIZER_PRE_TOKENIZER_H_
#define RUNTIME_TOKENIZER_PRE_TOKENIZER_H_

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "runtime/tokenizer/normalizer.h"
#include "runtime/tokenizer/pattern.h"

namespace folio {

// What becomes of the matches of a pattern, as tokenizer.json names it.
enum class SplitBehavior {
  kRemoved,             // They vanish; what is between them are the pieces.
  kIsolated,            // Each is a piece, and so is what is between them.
  kMergedWithPrevious,  // Each ends the piece before it, if that is no match.
  kMergedWithNext,      // Each begins the piece after it, if that is no match.
  kContiguous,          // Neighbouring matches are one piece.
};

// Cuts at the matches of `pattern`, or, inverted, at what is between them.
struct Split {
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
};

// Puts `prefix` before a piece that doesn't begin with it.
struct PrefixPieces {
  std::string prefix;
  bool only_at_start = false;  // Of the text, not of each piece.
};

// A normaliser among the steps rewrites each piece.
using PreTokenizerStep = std::variant<Split, PrefixPieces, Normalizer>;

// Steps, each of which is done to each piece of the one before. Immutable,
// thread-safe.
class PreTokenizer {
 public:
  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<PreTokenizerStep> steps)
      : steps_(std::move(steps)) {}

  // Calls `visit` for each piece of `text`, in order; none is empty. The views
  // are valid during the call. `is_at_start` says whether `text` is the start
  // of the whole text. The first error, a visitor's or a pattern's, ends it.
  // REQUIRES: `text` is valid UTF-8; so are the pieces.
  using Visitor = absl::FunctionRef<absl::Status(std::string_view piece)>;
  absl::Status ForEachPiece(std::string_view text, bool is_at_start,
                            Visitor visit) const;

 private:
  absl::Status RunFrom(size_t step, std::string_view text, bool is_at_start,
                       Visitor visit) const;

  std::vector<PreTokenizerStep> steps_;
};

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_PRE_TOKENIZER_H_
