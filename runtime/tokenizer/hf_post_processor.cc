#include "runtime/tokenizer/hf_post_processor.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

// Appends the ids that the template's `special_tokens` gives for `name`.
absl::Status AppendIds(const JsonPlace& special_tokens, const std::string& name,
                       int32_t vocab_size, std::vector<TokenId>& ids) {
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace entry, special_tokens.Get(name));
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace list, entry.Get("ids"));
  FOLIO_ASSIGN_OR_RETURN(const std::vector<JsonPlace> elements,
                         list.Elements());
  for (const JsonPlace& element : elements) {
    FOLIO_ASSIGN_OR_RETURN(const int64_t id, element.Integer());
    if (id < 0 || id >= vocab_size) {
      return element.Error(absl::StrCat(
          "found ", id, "; the vocabulary has ids 0 to ", vocab_size - 1));
    }
    ids.push_back(static_cast<TokenId>(id));
  }
  return absl::OkStatus();
}

absl::StatusOr<HfTemplate> ReadTemplate(const JsonPlace& place,
                                        int32_t vocab_size) {
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace special_tokens,
                         place.Get("special_tokens"));
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace single, place.Get("single"));
  FOLIO_ASSIGN_OR_RETURN(const std::vector<JsonPlace> parts, single.Elements());
  HfTemplate result;
  int num_texts = 0;
  for (const JsonPlace& part : parts) {
    FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> text,
                           part.Find("Sequence"));
    if (text.has_value()) {
      FOLIO_ASSIGN_OR_RETURN(const std::string name, text->StringAt("id"));
      if (name == "A") ++num_texts;
      continue;
    }
    FOLIO_ASSIGN_OR_RETURN(const JsonPlace token, part.Get("SpecialToken"));
    FOLIO_ASSIGN_OR_RETURN(const std::string name, token.StringAt("id"));
    FOLIO_RETURN_IF_ERROR(
        AppendIds(special_tokens, name, vocab_size,
                  num_texts == 0 ? result.before : result.after));
  }
  if (num_texts != 1) {
    return single.Error(
        absl::StrCat("the text itself, Sequence \"A\", is in it ", num_texts,
                     " times; expected once"));
  }
  return result;
}

absl::StatusOr<std::optional<HfTemplate>> Read(const JsonPlace& place,
                                               int32_t vocab_size) {
  FOLIO_ASSIGN_OR_RETURN(const std::string type, place.StringAt("type"));
  if (type == "ByteLevel") return std::nullopt;
  if (type == "TemplateProcessing") return ReadTemplate(place, vocab_size);
  if (type != "Sequence") {
    return place.Error(absl::StrCat(
        "found the type \"", type,
        "\"; supported are TemplateProcessing, ByteLevel and Sequence"));
  }
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace list, place.Get("processors"));
  FOLIO_ASSIGN_OR_RETURN(const std::vector<JsonPlace> parts, list.Elements());
  std::optional<HfTemplate> result;
  for (const JsonPlace& part : parts) {
    FOLIO_ASSIGN_OR_RETURN(std::optional<HfTemplate> found,
                           Read(part, vocab_size));
    if (!found.has_value()) continue;
    if (result.has_value()) return part.Error("a second template");
    result = std::move(found);
  }
  return result;
}

}  // namespace

absl::StatusOr<std::optional<HfTemplate>> ReadHfPostProcessor(
    const JsonPlace& root, int32_t vocab_size) {
  FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> place,
                         root.Find("post_processor"));
  if (!place.has_value()) return std::nullopt;
  return Read(*place, vocab_size);
}

}  // namespace folio
