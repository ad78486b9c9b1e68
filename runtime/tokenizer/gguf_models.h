// The kinds of tokenizers that GGUF files carry.

#ifndef RUNTIME_TOKENIZER_GGUF_MODELS_H_
#define RUNTIME_TOKENIZER_GGUF_MODELS_H_

#include "absl/status/statusor.h"
#include "runtime/tokenizer/bpe_tokenizer.h"
#include "runtime/tokenizer/gguf_vocabulary.h"
#include "runtime/weights/gguf.h"

namespace folio {

struct GgufModel {
  // All but the tokens around a text, and what special tokens there are.
  BpeTokenizerParts parts;
  bool adds_bos = false;  // Unless the file says otherwise.
};

// tokenizer.ggml.model "gpt2": tokens and merges in GPT-2's alphabet. A file
// without tokenizer.ggml.pre, as they were made before that key existed, is
// split by GPT-2's rules, with a warning.
absl::StatusOr<GgufModel> ReadGgufByteLevelBpe(
    const GgufFile& file, const GgufVocabulary& vocabulary);

// tokenizer.ggml.model "llama": tokens with scores. SentencePiece's BPE joins
// the two neighbours whose token has the highest score, and writes characters
// without a token as bytes (https://github.com/google/sentencepiece).
absl::StatusOr<GgufModel> ReadGgufSentencePiece(
    const GgufFile& file, const GgufVocabulary& vocabulary);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_GGUF_MODELS_H_
