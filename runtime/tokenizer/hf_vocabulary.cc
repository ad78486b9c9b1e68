#include "runtime/tokenizer/hf_vocabulary.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

using nlohmann::json;

// Small vocabularies may have this many ids without tokens.
constexpr int64_t kFreeIds = 1024;

class Reader {
 public:
  explicit Reader(int64_t num_tokens)
      : max_ids_(std::min<int64_t>(2 * num_tokens + kFreeIds,
                                   std::numeric_limits<TokenId>::max())) {}

  // Takes a token in. The message of an error says what is wrong with its id;
  // the caller knows where it stands.
  absl::Status Add(const std::string& text, const json& number) {
    if (!number.is_number_integer()) {
      return absl::InvalidArgumentError("expected a whole number as the id");
    }
    // A number above 2^63 comes out negative.
    const auto id = number.get<int64_t>();
    if (id < 0 || id >= max_ids_) {
      return absl::InvalidArgumentError(
          absl::StrCat("the id ", number.dump(),
                       " is out of range; with this many tokens, ids "
                       "from 0 to ",
                       max_ids_ - 1, " are supported"));
    }
    const auto [found, is_new] =
        vocabulary.ids.try_emplace(text, static_cast<TokenId>(id));
    if (found->second != id) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it has the id ", id, ", and ", found->second, " elsewhere"));
    }
    if (id >= vocabulary.size()) vocabulary.texts.resize(id + 1);
    std::string& place = vocabulary.texts[id];
    if (is_new && !place.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", place, "\" has the id ", id, " too"));
    }
    place = text;
    return absl::OkStatus();
  }

  HfVocabulary vocabulary;

 private:
  const int64_t max_ids_;
};

absl::Status AddModelTokens(const JsonPlace& vocab, Reader& reader) {
  for (const auto& [text, id] : vocab.value().items()) {
    const absl::Status added = reader.Add(text, id);
    if (!added.ok()) {
      return vocab.Error(
          absl::StrCat("token \"", text, "\": ", std::string(added.message())));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<HfAddedToken> ReadAddedToken(const JsonPlace& place) {
  HfAddedToken result;
  AddedToken& token = result.token;
  FOLIO_ASSIGN_OR_RETURN(token.content, place.StringAt("content"));
  FOLIO_ASSIGN_OR_RETURN(token.special, place.BoolAt("special", false));
  FOLIO_ASSIGN_OR_RETURN(token.single_word, place.BoolAt("single_word", false));
  FOLIO_ASSIGN_OR_RETURN(token.lstrip, place.BoolAt("lstrip", false));
  FOLIO_ASSIGN_OR_RETURN(token.rstrip, place.BoolAt("rstrip", false));
  FOLIO_ASSIGN_OR_RETURN(result.normalized,
                         place.BoolAt("normalized", !token.special));
  return result;
}

absl::Status AddAddedTokens(const std::vector<JsonPlace>& places,
                            Reader& reader) {
  HfVocabulary& vocabulary = reader.vocabulary;
  for (const JsonPlace& place : places) {
    FOLIO_ASSIGN_OR_RETURN(HfAddedToken added, ReadAddedToken(place));
    FOLIO_ASSIGN_OR_RETURN(const JsonPlace id, place.Get("id"));
    const absl::Status status = reader.Add(added.token.content, id.value());
    if (!status.ok()) {
      return place.Error(absl::StrCat("token \"", added.token.content,
                                      "\": ", std::string(status.message())));
    }
    added.token.id = vocabulary.ids.at(added.token.content);
    vocabulary.added.push_back(std::move(added));
  }
  vocabulary.is_special.resize(vocabulary.texts.size());
  vocabulary.is_added.resize(vocabulary.texts.size());
  for (const HfAddedToken& added : vocabulary.added) {
    vocabulary.is_added[added.token.id] = true;
    if (added.token.special) vocabulary.is_special[added.token.id] = true;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HfVocabulary> ReadHfVocabulary(const JsonPlace& root) {
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace model, root.Get("model"));
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace vocab, model.Get("vocab"));
  FOLIO_RETURN_IF_ERROR(vocab.ExpectObject());
  FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> added,
                         root.Find("added_tokens"));
  std::vector<JsonPlace> places;
  if (added.has_value()) {
    FOLIO_ASSIGN_OR_RETURN(places, added->Elements());
  }
  Reader reader(static_cast<int64_t>(vocab.value().size() + places.size()));
  FOLIO_RETURN_IF_ERROR(AddModelTokens(vocab, reader));
  FOLIO_RETURN_IF_ERROR(AddAddedTokens(places, reader));
  if (reader.vocabulary.texts.empty()) return vocab.Error("it has no tokens");
  return std::move(reader.vocabulary);
}

}  // namespace folio
