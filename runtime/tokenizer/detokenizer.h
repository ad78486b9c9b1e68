// One sequence's tokens as text, while they come.

#ifndef RUNTIME_TOKENIZER_DETOKENIZER_H_
#define RUNTIME_TOKENIZER_DETOKENIZER_H_

#include <cstddef>
#include <span>
#include <string>

#include "runtime/base/types.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {

// Where in a text the tokens begin.
enum class TextStart {
  kStart,  // At its start: a space that encoding put there is taken away.
  kContinuation,  // Inside, as generated tokens follow a prompt.
};

// Bytes that may still become a character are held back, and what can't become
// one is replaced by U+FFFD, so that all output is valid UTF-8: every single
// piece of it. (The replacement policy is that of Unicode 15, section 3.9: one
// U+FFFD for each maximal subpart.) The concatenation of all output does not
// depend on how tokens were grouped. Used by one thread.
class Detokenizer {
 public:
  // More than what one token of any usual vocabulary adds to a text. (GPT-2's
  // longest has 128 bytes.)
  static constexpr size_t kUsualBytes = 256;

  // `tokenizer` must outlive the detokenizer. Takes memory for tokens of
  // kUsualBytes at once, so that Append takes none but for longer ones.
  Detokenizer(const Tokenizer* tokenizer, TextStart start)
      : tokenizer_(tokenizer),
        strips_space_(start == TextStart::kStart &&
                      tokenizer->adds_leading_space()),
        is_at_start_(strips_space_) {
    pending_.reserve(kUsualBytes);
  }

  // Appends to `text` what is complete now. Tokens beyond the tokenizer's
  // vocabulary have no text: models may have more, to fill up a matrix.
  // REQUIRES: token >= 0.
  void Append(TokenId token, std::string& text);

  // Whether bytes are held back.
  bool has_pending() const { return !pending_.empty(); }

  // At the end of the sequence: appends what was held back, replaced.
  // Afterwards the detokenizer is as good as new.
  void Finish(std::string& text);

 private:
  const Tokenizer* tokenizer_;
  bool strips_space_;
  bool is_at_start_;     // The next byte is one to take away if it is a space.
  std::string pending_;  // Between calls an incomplete character, <= 3 bytes.
};

// The text of a whole token sequence, from a text's start; always valid UTF-8.
// REQUIRES: all tokens are in the tokenizer's vocabulary.
std::string Decode(const Tokenizer& tokenizer, std::span<const TokenId> tokens);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_DETOKENIZER_H_
