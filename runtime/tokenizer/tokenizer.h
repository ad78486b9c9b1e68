// Text to token ids and back.

#ifndef RUNTIME_TOKENIZER_TOKENIZER_H_
#define RUNTIME_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/types.h"

namespace folio {

// The byte tokenizer: token b stands for the byte b, for b < min(vocab_size,
// 256). Ids from 256 on, and special tokens such as BOS and EOS, stand for no
// bytes. Immutable, so any number of threads may use one.
class Tokenizer {
 public:
  // REQUIRES: vocab_size > 0; each special token is in [0, vocab_size).
  explicit Tokenizer(int32_t vocab_size,
                     const std::vector<TokenId>& special_tokens = {});

  // INVALID_ARGUMENT, naming byte and offset, when a byte has no token: it is
  // outside the vocabulary, or its id is special.
  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text) const;

  // Appends the bytes that `token` stands for; they need not be whole
  // characters. REQUIRES: 0 <= token < vocab_size.
  void AppendBytes(TokenId token, std::string& bytes) const;

 private:
  int32_t vocab_size_;
  std::vector<bool> is_byte_;  // [min(vocab_size, 256)]
};

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_TOKENIZER_H_
