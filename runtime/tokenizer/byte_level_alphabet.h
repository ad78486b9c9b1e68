// How byte-level BPE writes bytes as visible characters.

#ifndef RUNTIME_TOKENIZER_BYTE_LEVEL_ALPHABET_H_
#define RUNTIME_TOKENIZER_BYTE_LEVEL_ALPHABET_H_

#include <optional>
#include <string>
#include <string_view>

namespace folio {

// The bytes that `text` writes in GPT-2's alphabet (bytes_to_unicode of
// https://github.com/openai/gpt-2/blob/master/src/encoder.py): the printable
// bytes of Latin-1 stand for themselves, and the other 68, in order, are U+0100
// to U+0143, so that a space is "\u0120". Nothing when some character of `text`
// is not in the alphabet. REQUIRES: `text` is valid UTF-8.
std::optional<std::string> BytesOfByteLevelText(std::string_view text);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_BYTE_LEVEL_ALPHABET_H_
