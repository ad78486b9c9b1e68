#include "runtime/tokenizer/hf_model.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/byte_level_alphabet.h"
#include "runtime/tokenizer/sentencepiece_text.h"

namespace folio {
namespace {

using nlohmann::json;

absl::Status CheckModel(const JsonPlace& model) {
  // Old files have no type; all of them are BPE.
  FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> type,
                         model.Find("type"));
  if (type.has_value()) {
    FOLIO_ASSIGN_OR_RETURN(const std::string name, type->String());
    if (name != "BPE") {
      return type->Error(
          absl::StrCat("found \"", name, "\"; supported is BPE"));
    }
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> affix,
                           model.Find(key));
    if (!affix.has_value()) continue;
    FOLIO_ASSIGN_OR_RETURN(const std::string text, affix->String());
    if (!text.empty()) {
      return affix->Error(
          absl::StrCat("found \"", text, "\"; only an empty one is supported"));
    }
  }
  FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> dropout,
                         model.Find("dropout"));
  if (dropout.has_value() && dropout->value() != 0.0) {
    return dropout->Error(absl::StrCat("found ", dropout->value().dump(),
                                       "; only null and 0 are supported"));
  }
  return absl::OkStatus();
}

// The texts that text may become. In the byte-level alphabet, as bytes; what
// isn't in the alphabet is never reached by merging, and stays empty.
std::vector<std::string> MergedTexts(const HfVocabulary& vocabulary,
                                     bool byte_level) {
  if (!byte_level) return vocabulary.texts;
  std::vector<std::string> texts(vocabulary.texts.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    texts[id] = BytesOfByteLevelText(vocabulary.texts[id]).value_or("");
  }
  return texts;
}

// The two parts of a merge: of "a b", or of ["a", "b"].
std::optional<std::pair<std::string, std::string>> PartsOfMerge(
    const json& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
      merge[1].is_string()) {
    return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
  }
  if (!merge.is_string()) return std::nullopt;
  const auto& text = merge.get_ref<const std::string&>();
  const size_t space = text.find(' ');
  if (space == text.npos || text.find(' ', space + 1) != text.npos) {
    return std::nullopt;
  }
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

// Special tokens are no text, so nothing is merged into one.
absl::StatusOr<MergeTable> ReadMerges(const JsonPlace& model,
                                      const HfVocabulary& vocabulary) {
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace list, model.Get("merges"));
  FOLIO_RETURN_IF_ERROR(list.ExpectList());
  MergeTable table;
  table.Reserve(list.value().size());
  int32_t rank = -1;
  for (const json& merge : list.value()) {
    ++rank;
    const auto complain = [&](std::string_view what) {
      return list.Error(absl::StrCat("merge ", rank, " is ",
                                     merge.dump().substr(0, 100), "; ",
                                     std::string(what)));
    };
    const auto parts = PartsOfMerge(merge);
    if (!parts || parts->first.empty() || parts->second.empty()) {
      return complain(
          "expected two tokens, as \"a b\" or [\"a\", \"b\"], neither empty");
    }
    const auto left = vocabulary.ids.find(parts->first);
    const auto right = vocabulary.ids.find(parts->second);
    const auto merged = vocabulary.ids.find(parts->first + parts->second);
    for (const auto& [found, name] : {std::pair(left, "its first part"),
                                      std::pair(right, "its second part"),
                                      std::pair(merged, "what it makes")}) {
      if (found == vocabulary.ids.end()) {
        return complain(absl::StrCat(name, " is not in the vocabulary"));
      }
    }
    if (vocabulary.is_special[left->second] ||
        vocabulary.is_special[right->second] ||
        vocabulary.is_special[merged->second]) {
      continue;
    }
    table.Add(left->second, right->second, {rank, merged->second});
  }
  return table;
}

absl::StatusOr<BpeOptions> ReadOptions(const JsonPlace& model,
                                       const HfVocabulary& vocabulary,
                                       bool byte_level) {
  BpeOptions options;
  options.units = byte_level ? BpeUnits::kBytes : BpeUnits::kCharacters;
  FOLIO_ASSIGN_OR_RETURN(options.takes_whole_pieces,
                         model.BoolAt("ignore_merges", false));
  FOLIO_ASSIGN_OR_RETURN(options.fuses_unknown,
                         model.BoolAt("fuse_unk", false));
  FOLIO_ASSIGN_OR_RETURN(const bool byte_fallback,
                         model.BoolAt("byte_fallback", false));
  for (TokenId id = 0; id < vocabulary.size() && byte_fallback; ++id) {
    const std::optional<char> byte = ByteOfToken(vocabulary.texts[id]);
    if (byte) options.byte_tokens[static_cast<uint8_t>(*byte)] = id;
  }
  FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> unknown,
                         model.Find("unk_token"));
  if (unknown.has_value()) {
    FOLIO_ASSIGN_OR_RETURN(const std::string text, unknown->String());
    const auto found = vocabulary.ids.find(text);
    if (found == vocabulary.ids.end()) {
      return unknown->Error(
          absl::StrCat("\"", text, "\" is not in the vocabulary"));
    }
    options.unknown = found->second;
  }
  return options;
}

}  // namespace

absl::StatusOr<HfModel> ReadHfModel(const JsonPlace& root,
                                    const HfVocabulary& vocabulary,
                                    bool byte_level) {
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace place, root.Get("model"));
  FOLIO_RETURN_IF_ERROR(CheckModel(place));
  FOLIO_ASSIGN_OR_RETURN(const BpeOptions options,
                         ReadOptions(place, vocabulary, byte_level));
  FOLIO_ASSIGN_OR_RETURN(MergeTable merges, ReadMerges(place, vocabulary));
  std::vector<std::string> texts = MergedTexts(vocabulary, byte_level);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.is_special[id]) texts[id].clear();
  }
  HfModel result;
  FOLIO_ASSIGN_OR_RETURN(result.byte_fallback,
                         place.BoolAt("byte_fallback", false));
  result.num_merges = static_cast<int32_t>(merges.size());
  result.model = std::make_unique<const BpeModel>(Vocabulary(texts),
                                                  std::move(merges), options);
  return result;
}

}  // namespace folio
