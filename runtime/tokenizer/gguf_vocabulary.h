// What all tokenizers in GGUF files have in common: tokenizer.ggml.*.

#ifndef RUNTIME_TOKENIZER_GGUF_VOCABULARY_H_
#define RUNTIME_TOKENIZER_GGUF_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/tokenizer/added_tokens.h"
#include "runtime/weights/gguf.h"

namespace folio {

// The numbers are the format's.
enum class GgufTokenType {
  kNormal = 1,
  kUnknown = 2,      // Stands for what has no token.
  kControl = 3,      // BOS and the like.
  kUserDefined = 4,  // Always found in text.
  kUnused = 5,
  kByte = 6,  // "<0x0A>"
};

struct GgufVocabulary {
  std::span<const std::string_view> texts;  // Valid as long as the file is.
  std::vector<GgufTokenType> types;         // [texts.size()]

  int32_t size() const { return static_cast<int32_t>(texts.size()); }
  // Unknown and control tokens are special: text becomes one only when special
  // tokens are asked for, and they stand for none.
  bool IsSpecial(TokenId id) const;
};

// The two lists have the same length, and all texts are valid UTF-8.
absl::StatusOr<GgufVocabulary> ReadGgufVocabulary(const GgufFile& file);

// Its special and user-defined tokens.
AddedTokens AddedTokensOf(const GgufVocabulary& vocabulary);

// An INVALID_ARGUMENT that begins with the file and the key.
absl::Status GgufKeyError(const GgufFile& file, std::string_view key,
                          std::string_view what);

// Nothing, or `otherwise`, when the file doesn't have the key.
absl::StatusOr<std::optional<TokenId>> ReadGgufTokenId(const GgufFile& file,
                                                       std::string_view key,
                                                       int32_t vocab_size);
absl::StatusOr<bool> ReadGgufBool(const GgufFile& file, std::string_view key,
                                  bool otherwise);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_GGUF_VOCABULARY_H_
