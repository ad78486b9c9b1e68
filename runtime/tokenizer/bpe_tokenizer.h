// The tokenizer whose parts files describe.

#ifndef RUNTIME_TOKENIZER_BPE_TOKENIZER_H_
#define RUNTIME_TOKENIZER_BPE_TOKENIZER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/added_tokens.h"
#include "runtime/tokenizer/bpe_model.h"
#include "runtime/tokenizer/normalizer.h"
#include "runtime/tokenizer/pre_tokenizer.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/vocabulary.h"

namespace folio {

// What a BpeTokenizer consists of. Text goes through the parts in this order,
// as tokenizer.json has it; GGUF's tokenizers are put together of the same.
struct BpeTokenizerParts {
  TokenizerInfo info;
  AddedTokens added;             // Found in the text as it is.
  Normalizer normalizer;         // Done to each stretch of text between them.
  AddedTokens normalized_added;  // Found in what the normaliser made of it.
  PreTokenizer pre_tokenizer;
  std::unique_ptr<const BpeModel> model;
  // Around the tokens of a text, with EncodeOptions::add_special.
  std::vector<TokenId> before;
  std::vector<TokenId> after;
  // [info.vocab_size] what each token stands for inside a text; nothing for
  // special ones.
  std::vector<std::string> token_bytes;
  bool adds_leading_space = false;
};

class BpeTokenizer : public Tokenizer {
 public:
  // REQUIRES: parts.model is not null, and token_bytes has the vocabulary's
  // size.
  explicit BpeTokenizer(BpeTokenizerParts parts);

  const TokenizerInfo& info() const override { return parts_.info; }
  absl::StatusOr<std::vector<TokenId>> Encode(
      std::string_view text, const EncodeOptions& options) const override;
  void AppendBytes(TokenId token, std::string& bytes) const override;
  bool adds_leading_space() const override { return parts_.adds_leading_space; }

 private:
  const BpeTokenizerParts parts_;
};

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_BPE_TOKENIZER_H_
