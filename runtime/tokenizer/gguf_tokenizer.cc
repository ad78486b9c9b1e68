// OpenGgufTokenizer: the tokenizer that the keys tokenizer.ggml.* describe.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/bpe_tokenizer.h"
#include "runtime/tokenizer/gguf_models.h"
#include "runtime/tokenizer/gguf_vocabulary.h"
#include "runtime/tokenizer/no_tokenizer.h"
#include "runtime/tokenizer/open_tokenizer.h"

namespace folio {
namespace {

constexpr char kModelKey[] = "tokenizer.ggml.model";

// The tokens that end a text; the first is the one that may be added.
constexpr const char* kEosKeys[] = {"tokenizer.ggml.eos_token_id",
                                    "tokenizer.ggml.eot_token_id",
                                    "tokenizer.ggml.eom_token_id"};

using ReadModel = absl::StatusOr<GgufModel>(const GgufFile& file,
                                            const GgufVocabulary& vocabulary);

// Files that are for token ids alone say how many there are.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeNoTokenizer(
    const GgufFile& file) {
  FOLIO_ASSIGN_OR_RETURN(const std::string_view architecture,
                         file.String("general.architecture"));
  const std::string key =
      absl::StrCat(std::string(architecture), ".vocab_size");
  FOLIO_ASSIGN_OR_RETURN(const int64_t size, file.Integer(key));
  if (size < 1 || size > INT32_MAX) {
    return GgufKeyError(file, key,
                        absl::StrCat("found ", size, "; expected a size"));
  }
  return std::make_unique<NoTokenizer>(static_cast<int32_t>(size));
}

// How to read the kind of tokenizer that the file names.
absl::StatusOr<ReadModel*> FindReader(const GgufFile& file) {
  FOLIO_ASSIGN_OR_RETURN(const std::string_view model, file.String(kModelKey));
  if (model == "gpt2") return &ReadGgufByteLevelBpe;
  if (model == "llama") return &ReadGgufSentencePiece;
  return GgufKeyError(
      file, kModelKey,
      absl::StrCat("found \"", std::string(model),
                   "\"; supported are gpt2, llama and no_vocab"));
}

// Takes BOS, EOS and what is put around a text from the file into `parts`.
absl::Status ReadSpecialTokens(const GgufFile& file, bool adds_bos_by_default,
                               BpeTokenizerParts& parts) {
  TokenizerInfo& info = parts.info;
  FOLIO_ASSIGN_OR_RETURN(
      info.bos_token,
      ReadGgufTokenId(file, "tokenizer.ggml.bos_token_id", info.vocab_size));
  for (const char* key : kEosKeys) {
    FOLIO_ASSIGN_OR_RETURN(const std::optional<TokenId> token,
                           ReadGgufTokenId(file, key, info.vocab_size));
    const bool is_new =
        std::ranges::find(info.eos_tokens, token) == info.eos_tokens.end();
    if (token.has_value() && is_new) info.eos_tokens.push_back(*token);
  }
  FOLIO_ASSIGN_OR_RETURN(
      const bool adds_bos,
      ReadGgufBool(file, "tokenizer.ggml.add_bos_token", adds_bos_by_default));
  FOLIO_ASSIGN_OR_RETURN(
      const bool adds_eos,
      ReadGgufBool(file, "tokenizer.ggml.add_eos_token", false));
  if (adds_bos && info.bos_token.has_value()) {
    parts.before.push_back(*info.bos_token);
  }
  if (adds_eos && file.Has(kEosKeys[0])) {
    parts.after.push_back(info.eos_tokens.front());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenGgufTokenizer(
    const GgufFile& file) {
  if (const auto model = file.String(kModelKey);
      model.ok() && *model == "no_vocab") {
    return MakeNoTokenizer(file);
  }
  FOLIO_ASSIGN_OR_RETURN(ReadModel* const read_model, FindReader(file));
  FOLIO_ASSIGN_OR_RETURN(const GgufVocabulary vocabulary,
                         ReadGgufVocabulary(file));
  FOLIO_ASSIGN_OR_RETURN(GgufModel model, read_model(file, vocabulary));
  model.parts.info.vocab_size = vocabulary.size();
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.IsSpecial(id)) ++model.parts.info.num_special_tokens;
  }
  FOLIO_RETURN_IF_ERROR(ReadSpecialTokens(file, model.adds_bos, model.parts));
  model.parts.added = AddedTokensOf(vocabulary);
  return std::make_unique<BpeTokenizer>(std::move(model.parts));
}

}  // namespace folio
