// Bytes as tokens, for models that have no tokenizer of their own.

#ifndef RUNTIME_TOKENIZER_BYTE_TOKENIZER_H_
#define RUNTIME_TOKENIZER_BYTE_TOKENIZER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/tokenizer.h"

namespace folio {

// Token i below 256 is the byte i, unless it is special; every other token
// stands for no bytes. Knows no names of special tokens and adds none, so that
// EncodeOptions change nothing.
class ByteTokenizer : public Tokenizer {
 public:
  // REQUIRES: vocab_size > 0, and each special token is in the vocabulary.
  explicit ByteTokenizer(int32_t vocab_size,
                         const std::vector<TokenId>& special_tokens = {});

  const TokenizerInfo& info() const override { return info_; }
  absl::StatusOr<std::vector<TokenId>> Encode(
      std::string_view text, const EncodeOptions& options) const override;
  void AppendBytes(TokenId token, std::string& bytes) const override;

 private:
  TokenizerInfo info_;
  std::vector<bool> is_byte_;  // [min(vocab_size, 256)]
};

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_BYTE_TOKENIZER_H_
