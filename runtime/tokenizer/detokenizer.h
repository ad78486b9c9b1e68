// One sequence's tokens as text, while they come.

#ifndef RUNTIME_TOKENIZER_DETOKENIZER_H_
#define RUNTIME_TOKENIZER_DETOKENIZER_H_

#include <string>

#include "runtime/base/types.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {

// Bytes that may still become a character are held back, and what can't become
// one is replaced by U+FFFD, so that all output is valid UTF-8: every single
// piece of it. (The replacement policy is that of Unicode 15, section 3.9: one
// U+FFFD for each maximal subpart.) The concatenation of all output does not
// depend on how tokens were grouped. Used by one thread.
class Detokenizer {
 public:
  // `tokenizer` must outlive the detokenizer.
  explicit Detokenizer(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  // Appends to `text` what is complete now.
  // REQUIRES: `token` is in the tokenizer's vocabulary.
  void Append(TokenId token, std::string& text);

  // At the end of the sequence: appends what was held back, replaced.
  // Afterwards the detokenizer is as good as new.
  void Finish(std::string& text);

 private:
  const Tokenizer* tokenizer_;
  std::string pending_;  // Between calls an incomplete character, <= 3 bytes.
};

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_DETOKENIZER_H_
