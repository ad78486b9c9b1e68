// How SentencePiece's tokens write bytes and spaces.

#ifndef RUNTIME_TOKENIZER_SENTENCEPIECE_TEXT_H_
#define RUNTIME_TOKENIZER_SENTENCEPIECE_TEXT_H_

#include <optional>
#include <string>
#include <string_view>

namespace folio {

// U+2581, which stands for a space in SentencePiece's tokens.
inline constexpr std::string_view kSpaceMarker = "\u2581";

// 0x0A for "<0x0A>"; nothing for what doesn't have that form.
std::optional<char> ByteOfToken(std::string_view text);

std::string WithSpacesForMarkers(std::string_view text);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_SENTENCEPIECE_TEXT_H_
