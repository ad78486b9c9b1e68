// The pre-tokenisers that GGUF files know by name.

#ifndef RUNTIME_TOKENIZER_NAMED_PRE_TOKENIZERS_H_
#define RUNTIME_TOKENIZER_NAMED_PRE_TOKENIZERS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/tokenizer/pre_tokenizer.h"

namespace folio {

// GPT-2's expression, which tokenizer.json's ByteLevel stands for as well.
extern const std::string_view kGpt2Pattern;

// How a family of byte-level BPE tokenizers treats text before merging.
struct NamedPreTokenizer {
  PreTokenizer pre_tokenizer;
  bool composes_text = false;       // Text goes through NFC first.
  bool takes_whole_pieces = false;  // See BpeOptions.
  bool adds_bos = false;            // Unless the file says otherwise.
};

// The one that tokenizer.ggml.pre calls `name`. INVALID_ARGUMENT lists the
// names that there are.
absl::StatusOr<NamedPreTokenizer> FindNamedPreTokenizer(std::string_view name);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_NAMED_PRE_TOKENIZERS_H_
