// What comes around a text's tokens: tokenizer.json's `post_processor`.

#ifndef RUNTIME_TOKENIZER_HF_POST_PROCESSOR_H_
#define RUNTIME_TOKENIZER_HF_POST_PROCESSOR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/types.h"
#include "runtime/tokenizer/json_place.h"

namespace folio {

struct HfTemplate {
  std::vector<TokenId> before;
  std::vector<TokenId> after;
};

// The template for a single text of TemplateProcessing; nothing when there is
// none. (ByteLevel only moves offsets, which we have none of.) `root` is the
// whole document.
absl::StatusOr<std::optional<HfTemplate>> ReadHfPostProcessor(
    const JsonPlace& root, int32_t vocab_size);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_HF_POST_PROCESSOR_H_
