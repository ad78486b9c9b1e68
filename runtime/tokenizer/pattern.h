// Regular expressions over Unicode text.

#ifndef RUNTIME_TOKENIZER_PATTERN_H_
#define RUNTIME_TOKENIZER_PATTERN_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace folio {

// A compiled pattern, matched by PCRE2 (https://www.pcre.org) as machine code
// where the system allows that. Immutable; any number of threads may use one.
class Pattern {
 public:
  // Compiles an expression in the dialect of tokenizer.json (see
  // oniguruma_syntax.h). INVALID_ARGUMENT quotes it and says what is wrong.
  static absl::StatusOr<Pattern> Compile(std::string_view regex);
  // Matches `text` itself. INVALID_ARGUMENT when it is empty.
  static absl::StatusOr<Pattern> Literal(std::string_view text);

  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  // Calls `visit(begin, end)`, byte offsets, for the leftmost match, the
  // leftmost one after its end, and so on. A match may be empty. The visitor
  // may use this and other patterns; the first error it returns ends the
  // search. RESOURCE_EXHAUSTED when a match takes more steps or memory than the
  // text's length allows for (patterns exist that take exponentially many).
  // REQUIRES: `text` is valid UTF-8.
  using Visitor = absl::FunctionRef<absl::Status(size_t begin, size_t end)>;
  absl::Status ForEachMatch(std::string_view text, Visitor visit) const;

 private:
  struct Code;
  Pattern(std::unique_ptr<Code> code, std::string source);

  std::unique_ptr<Code> code_;
  std::string source_;  // As it was given, for messages.
};

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_PATTERN_H_
