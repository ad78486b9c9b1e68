// How tokens become text again: tokenizer.json's `decoder`.

#ifndef RUNTIME_TOKENIZER_HF_DECODER_H_
#define RUNTIME_TOKENIZER_HF_DECODER_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/tokenizer/json_place.h"

namespace folio {

struct HfDecoder {
  bool byte_level = false;     // Tokens write bytes in GPT-2's alphabet.
  bool byte_fallback = false;  // "<0x0A>" is a byte.
  // What to write for what, in this order.
  std::vector<std::pair<std::string, std::string>> replacements;
  bool strips_space = false;  // One from the beginning of the whole text.

  // What a token with this text stands for inside a text.
  std::string BytesOf(std::string_view text) const;
};

// `root` is the whole document. Decoders can be used whose result doesn't
// depend on which tokens stand side by side, save for a space at the beginning.
absl::StatusOr<HfDecoder> ReadHfDecoder(const JsonPlace& root);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_HF_DECODER_H_
