// From a model's files to its tokenizer.

#ifndef RUNTIME_TOKENIZER_OPEN_TOKENIZER_H_
#define RUNTIME_TOKENIZER_OPEN_TOKENIZER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/weights/gguf.h"
#include "runtime/weights/model_files.h"

namespace folio {

// The tokenizer of tokenizer.json; tokenizer_config.json, where there is one,
// says which tokens are BOS and EOS and whether BOS is added. INVALID_ARGUMENT
// names the file, the key, what was found and what is supported.
// NOT_FOUND when the folder has no tokenizer.json.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenHfTokenizer(
    const ModelFiles& files);

// The tokenizer that a GGUF file carries (tokenizer.ggml.*). Errors as above.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenGgufTokenizer(
    const GgufFile& file);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_OPEN_TOKENIZER_H_
