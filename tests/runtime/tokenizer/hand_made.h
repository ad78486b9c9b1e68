// Small tokenizers that tests make by hand, and how to open them.

#ifndef TESTS_RUNTIME_TOKENIZER_HAND_MADE_H_
#define TESTS_RUNTIME_TOKENIZER_HAND_MADE_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {

// `text` as GPT-2's alphabet writes it, by the definition in words: bytes that
// Latin-1 prints stand for themselves, and the others, in order, are U+0100 and
// so on.
std::string InByteLevelAlphabet(std::string_view text);

// Byte-level BPE: token i below 256 is the byte i, and further tokens are
// "ab" 256, "abc" 257, " ab" 258, "<end>" (special) 259. Splits as GPT-2 does.
nlohmann::json ByteLevelJson();

// SentencePiece's kind: <unk> 0, <s> 1, </s> 2, byte i is token 3 + i, then "a"
// 259, "b" 260, the space's marker 261, "ab" 262, marker + "ab" 263. Adds <s>.
nlohmann::json SentencePieceJson();

// The folder of messages is "hand-made".
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenHandMadeHf(
    const nlohmann::json& tokenizer);
// With what is in tokenizer.json and in tokenizer_config.json.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenHandMadeHfFiles(
    const std::string& tokenizer, const std::string& config);

// A file of metadata alone, made by GgufBuilder.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenHandMadeGguf(
    const std::string& bytes);

// Random characters of many kinds, of about `max_bytes` bytes at most; always
// the same for a seed.
std::string RandomText(uint64_t seed, int max_bytes);

}  // namespace folio

#endif  // TESTS_RUNTIME_TOKENIZER_HAND_MADE_H_
