#include "runtime/tokenizer/gguf_vocabulary.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"
#include "runtime/weights/shown.h"

namespace folio {
namespace {

constexpr char kTokensKey[] = "tokenizer.ggml.tokens";
constexpr char kTypesKey[] = "tokenizer.ggml.token_type";

absl::StatusOr<std::vector<GgufTokenType>> ReadTypes(const GgufFile& file,
                                                     size_t num_tokens) {
  FOLIO_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                         file.Integers(kTypesKey));
  if (numbers.size() != num_tokens) {
    return GgufKeyError(file, kTypesKey,
                        absl::StrCat("found ", numbers.size(), " types for ",
                                     num_tokens, " tokens"));
  }
  std::vector<GgufTokenType> types;
  types.reserve(numbers.size());
  for (const int64_t number : numbers) {
    if (number < static_cast<int64_t>(GgufTokenType::kNormal) ||
        number > static_cast<int64_t>(GgufTokenType::kByte)) {
      return GgufKeyError(file, kTypesKey,
                          absl::StrCat("token ", types.size(), " has the type ",
                                       number, "; expected 1 to 6"));
    }
    types.push_back(static_cast<GgufTokenType>(number));
  }
  return types;
}

}  // namespace

bool GgufVocabulary::IsSpecial(TokenId id) const {
  return types[id] == GgufTokenType::kUnknown ||
         types[id] == GgufTokenType::kControl;
}

absl::StatusOr<GgufVocabulary> ReadGgufVocabulary(const GgufFile& file) {
  GgufVocabulary vocabulary;
  FOLIO_ASSIGN_OR_RETURN(vocabulary.texts, file.Strings(kTokensKey));
  if (vocabulary.texts.empty()) {
    return GgufKeyError(file, kTokensKey, "the list is empty");
  }
  if (vocabulary.texts.size() > std::numeric_limits<TokenId>::max()) {
    return GgufKeyError(file, kTokensKey,
                        absl::StrCat("found ", vocabulary.texts.size(),
                                     " tokens, more than ids can count"));
  }
  for (size_t id = 0; id < vocabulary.texts.size(); ++id) {
    if (!IsValidUtf8(vocabulary.texts[id])) {
      return GgufKeyError(
          file, kTokensKey,
          absl::StrCat("the text of token ", id, " is not valid UTF-8"));
    }
  }
  FOLIO_ASSIGN_OR_RETURN(vocabulary.types,
                         ReadTypes(file, vocabulary.texts.size()));
  return vocabulary;
}

AddedTokens AddedTokensOf(const GgufVocabulary& vocabulary) {
  std::vector<AddedToken> added;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const bool is_special = vocabulary.IsSpecial(id);
    if (!is_special && vocabulary.types[id] != GgufTokenType::kUserDefined) {
      continue;
    }
    added.push_back({.id = id,
                     .content = std::string(vocabulary.texts[id]),
                     .special = is_special});
  }
  return AddedTokens(std::move(added));
}

absl::Status GgufKeyError(const GgufFile& file, std::string_view key,
                          std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", file.path(), "': ", std::string(key), ": ",
                   // It repeats what the file has, which can be anything.
                   Printable(what, /*max_bytes=*/1000)));
}

absl::StatusOr<std::optional<TokenId>> ReadGgufTokenId(const GgufFile& file,
                                                       std::string_view key,
                                                       int32_t vocab_size) {
  if (!file.Has(key)) return std::nullopt;
  FOLIO_ASSIGN_OR_RETURN(const int64_t id, file.Integer(key));
  if (id < 0 || id >= vocab_size) {
    return GgufKeyError(file, key,
                        absl::StrCat("found ", id,
                                     "; the vocabulary has ids 0 "
                                     "to ",
                                     vocab_size - 1));
  }
  return static_cast<TokenId>(id);
}

absl::StatusOr<bool> ReadGgufBool(const GgufFile& file, std::string_view key,
                                  bool otherwise) {
  if (!file.Has(key)) return otherwise;
  return file.Bool(key);
}

}  // namespace folio
