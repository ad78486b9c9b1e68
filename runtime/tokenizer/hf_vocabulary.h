// The tokens of tokenizer.json: those of the model and those added to it.

#ifndef RUNTIME_TOKENIZER_HF_VOCABULARY_H_
#define RUNTIME_TOKENIZER_HF_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "runtime/base/types.h"
#include "runtime/tokenizer/added_tokens.h"
#include "runtime/tokenizer/json_place.h"

namespace folio {

struct HfAddedToken {
  AddedToken token;
  bool normalized = false;  // Found in normalised text.
};

struct HfVocabulary {
  // [vocab_size] as the file has them, both kinds; empty for an id without one.
  std::vector<std::string> texts;
  std::vector<HfAddedToken> added;
  std::vector<bool> is_special;  // [vocab_size]
  std::vector<bool> is_added;    // [vocab_size]
  absl::flat_hash_map<std::string, TokenId> ids;

  int32_t size() const { return static_cast<int32_t>(texts.size()); }
};

// Reads `model.vocab` and `added_tokens`; `root` is the whole document. An
// error when two tokens have one id or one token two, when an id is negative,
// and when one is so great that fewer than half of those below it have tokens
// (tables are as long as the greatest id). Memory in proportion to the
// document.
absl::StatusOr<HfVocabulary> ReadHfVocabulary(const JsonPlace& root);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_HF_VOCABULARY_H_
