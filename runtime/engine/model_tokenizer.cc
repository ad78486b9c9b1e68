#include "runtime/engine/model_tokenizer.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/tokenizer/byte_tokenizer.h"
#include "runtime/tokenizer/no_tokenizer.h"
#include "runtime/tokenizer/open_tokenizer.h"

namespace folio {
namespace {

std::unique_ptr<Tokenizer> BytesFor(const DecoderConfig& config) {
  std::vector<TokenId> special = config.eos_tokens;
  if (config.bos_token.has_value()) special.push_back(*config.bos_token);
  return std::make_unique<ByteTokenizer>(config.vocab_size, special);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizerOf(
    const ModelLocation& location, const DecoderConfig& config) {
  if (location.gguf != nullptr) return OpenGgufTokenizer(*location.gguf);
  if (location.random.has_value()) return BytesFor(config);
  const ModelFiles& files = *location.files;
  if (files.Has("tokenizer.json")) return OpenHfTokenizer(files);
  for (const char* other : {"tokenizer.model", "vocab.json", "vocab.txt"}) {
    if (!files.Has(other)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "'", files.PathOf(other),
        "' is a kind of tokenizer file that is not supported; supported is "
        "tokenizer.json (the transformers library writes it: "
        "AutoTokenizer.from_pretrained(...).save_pretrained(...))"));
  }
  if (config.architecture == "TinyCausalLM") return BytesFor(config);
  return std::make_unique<NoTokenizer>(config.vocab_size);
}

}  // namespace folio
