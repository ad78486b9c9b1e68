// Text to token ids and back.

#ifndef RUNTIME_TOKENIZER_TOKENIZER_H_
#define RUNTIME_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/types.h"

namespace folio {

struct EncodeOptions {
  // Add the tokens that the model wants around a text, such as BOS.
  bool add_special = false;
  // Take special tokens written in the text ("<|endoftext|>") for the tokens
  // they name. Off, their names are text like any other: what users send can't
  // forge them.
  bool parse_special = false;
};

// Facts about a tokenizer that do not change.
struct TokenizerInfo {
  std::string kind;           // "byte-level BPE", "SentencePiece BPE", "bytes"
  std::string pre_tokenizer;  // "qwen2", "tokenizer.json"; empty if none.
  int32_t vocab_size = 0;     // Ids are in [0, vocab_size).
  int32_t num_merges = 0;
  int32_t num_special_tokens = 0;
  std::optional<TokenId> bos_token;
  std::vector<TokenId> eos_tokens;  // As the tokenizer's own files have them.
};

// Immutable, so any number of threads may use one.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual const TokenizerInfo& info() const = 0;

  // INVALID_ARGUMENT, naming byte and offset, for text that the tokenizer can't
  // encode: invalid UTF-8, or a byte without a token.
  virtual absl::StatusOr<std::vector<TokenId>> Encode(
      std::string_view text, const EncodeOptions& options) const = 0;

  // Appends the bytes that `token` stands for inside a text; they need not be
  // whole characters. Special tokens stand for none.
  // REQUIRES: 0 <= token < info().vocab_size.
  virtual void AppendBytes(TokenId token, std::string& bytes) const = 0;

  // Encoding puts a space before a text that has none, so that the first word
  // has the tokens of a word inside a text (SentencePiece does). Then decoding
  // from a text's start takes one away.
  virtual bool adds_leading_space() const { return false; }
};

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_TOKENIZER_H_
