// What tokenizer.json does to text before merging: its `normalizer` and its
// `pre_tokenizer`.

#ifndef RUNTIME_TOKENIZER_HF_TEXT_STEPS_H_
#define RUNTIME_TOKENIZER_HF_TEXT_STEPS_H_

#include "absl/status/statusor.h"
#include "runtime/tokenizer/json_place.h"
#include "runtime/tokenizer/normalizer.h"
#include "runtime/tokenizer/pre_tokenizer.h"

namespace folio {

// `root` is the whole document. Errors name the step that isn't supported, and
// list those that are.
absl::StatusOr<Normalizer> ReadHfNormalizer(const JsonPlace& root);

struct HfPreTokenizer {
  PreTokenizer pre_tokenizer;
  // Ends with ByteLevel: what is merged are bytes, in GPT-2's alphabet.
  bool byte_level = false;
};

absl::StatusOr<HfPreTokenizer> ReadHfPreTokenizer(const JsonPlace& root);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_HF_TEXT_STEPS_H_
