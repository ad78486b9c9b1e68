// OpenHfTokenizer: tokenizer.json and tokenizer_config.json.

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/bpe_tokenizer.h"
#include "runtime/tokenizer/hf_decoder.h"
#include "runtime/tokenizer/hf_model.h"
#include "runtime/tokenizer/hf_post_processor.h"
#include "runtime/tokenizer/hf_text_steps.h"
#include "runtime/tokenizer/hf_vocabulary.h"
#include "runtime/tokenizer/json_place.h"
#include "runtime/tokenizer/open_tokenizer.h"

namespace folio {
namespace {

constexpr char kTokenizerFile[] = "tokenizer.json";
constexpr char kConfigFile[] = "tokenizer_config.json";

// Deals the added tokens out to those that are found before normalising, and
// those that are found, normalised themselves, after it.
absl::Status SetAddedTokens(const HfVocabulary& vocabulary,
                            BpeTokenizerParts& parts) {
  std::vector<AddedToken> before;
  std::vector<AddedToken> after;
  for (const HfAddedToken& added : vocabulary.added) {
    if (!added.normalized || parts.normalizer.changes_nothing()) {
      before.push_back(added.token);
      continue;
    }
    FOLIO_ASSIGN_OR_RETURN(std::string content,
                           parts.normalizer.Apply(added.token.content));
    after.push_back(added.token);
    after.back().content = std::move(content);
  }
  parts.added = AddedTokens(std::move(before));
  parts.normalized_added = AddedTokens(std::move(after));
  return absl::OkStatus();
}

std::vector<std::string> BytesOfTokens(const HfVocabulary& vocabulary,
                                       const HfDecoder& decoder) {
  std::vector<std::string> bytes(vocabulary.texts.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.is_special[id]) continue;
    const std::string& text = vocabulary.texts[id];
    // The byte-level alphabet is for what was merged.
    const bool is_plain = decoder.byte_level && vocabulary.is_added[id];
    bytes[id] = is_plain ? text : decoder.BytesOf(text);
  }
  return bytes;
}

// Everything that tokenizer.json says.
absl::Status ReadTokenizer(const JsonPlace& root,
                           const HfVocabulary& vocabulary,
                           BpeTokenizerParts& parts, bool& has_template) {
  FOLIO_ASSIGN_OR_RETURN(parts.normalizer, ReadHfNormalizer(root));
  FOLIO_RETURN_IF_ERROR(SetAddedTokens(vocabulary, parts));
  FOLIO_ASSIGN_OR_RETURN(HfPreTokenizer pre_tokenizer,
                         ReadHfPreTokenizer(root));
  const bool byte_level = pre_tokenizer.byte_level;
  FOLIO_ASSIGN_OR_RETURN(const HfDecoder decoder, ReadHfDecoder(root));
  if (decoder.byte_level != byte_level) {
    return root.Error(
        "the decoder is ByteLevel and the pre_tokenizer doesn't end with it, "
        "or "
        "the other way round; supported is both or neither");
  }
  parts.pre_tokenizer = std::move(pre_tokenizer.pre_tokenizer);
  FOLIO_ASSIGN_OR_RETURN(HfModel model,
                         ReadHfModel(root, vocabulary, byte_level));
  parts.model = std::move(model.model);
  parts.token_bytes = BytesOfTokens(vocabulary, decoder);
  parts.adds_leading_space = decoder.strips_space;
  FOLIO_ASSIGN_OR_RETURN(std::optional<HfTemplate> around,
                         ReadHfPostProcessor(root, vocabulary.size()));
  has_template = around.has_value();
  if (around.has_value()) {
    parts.before = std::move(around->before);
    parts.after = std::move(around->after);
  }
  TokenizerInfo& info = parts.info;
  info.kind = byte_level            ? "byte-level BPE"
              : model.byte_fallback ? "SentencePiece BPE"
                                    : "character BPE";
  info.pre_tokenizer = kTokenizerFile;
  info.vocab_size = vocabulary.size();
  info.num_merges = model.num_merges;
  for (const bool special : vocabulary.is_special) {
    info.num_special_tokens += special;
  }
  return absl::OkStatus();
}

// The token that tokenizer_config.json names at `key`: a string, or an object
// with the string as its "content".
absl::StatusOr<std::optional<TokenId>> ReadNamedToken(
    const JsonPlace& config, std::string_view key,
    const HfVocabulary& vocabulary) {
  FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> place,
                         config.Find(key));
  if (!place.has_value()) return std::nullopt;
  absl::StatusOr<std::string> name =
      place->value().is_object() ? place->StringAt("content") : place->String();
  FOLIO_RETURN_IF_ERROR(name.status());
  const auto found = vocabulary.ids.find(*name);
  if (found == vocabulary.ids.end()) {
    return place->Error(
        absl::StrCat("\"", *name, "\" is not a token of ", kTokenizerFile));
  }
  return found->second;
}

// What tokenizer_config.json adds. Which tokens come around a text it says only
// where tokenizer.json has no template.
absl::Status ReadConfig(const JsonPlace& config, const HfVocabulary& vocabulary,
                        bool has_template, BpeTokenizerParts& parts) {
  FOLIO_ASSIGN_OR_RETURN(parts.info.bos_token,
                         ReadNamedToken(config, "bos_token", vocabulary));
  FOLIO_ASSIGN_OR_RETURN(const std::optional<TokenId> eos,
                         ReadNamedToken(config, "eos_token", vocabulary));
  if (eos.has_value()) parts.info.eos_tokens.push_back(*eos);
  FOLIO_ASSIGN_OR_RETURN(const bool adds_bos,
                         config.BoolAt("add_bos_token", false));
  FOLIO_ASSIGN_OR_RETURN(const bool adds_eos,
                         config.BoolAt("add_eos_token", false));
  if (has_template) return absl::OkStatus();
  if (adds_bos && parts.info.bos_token.has_value()) {
    parts.before.push_back(*parts.info.bos_token);
  }
  if (adds_eos && eos.has_value()) parts.after.push_back(*eos);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenHfTokenizer(
    const ModelFiles& files) {
  FOLIO_ASSIGN_OR_RETURN(const nlohmann::json document,
                         files.ReadJson(kTokenizerFile));
  const JsonPlace root(document, files.PathOf(kTokenizerFile));
  FOLIO_ASSIGN_OR_RETURN(const HfVocabulary vocabulary, ReadHfVocabulary(root));
  BpeTokenizerParts parts;
  bool has_template = false;
  FOLIO_RETURN_IF_ERROR(ReadTokenizer(root, vocabulary, parts, has_template));
  if (files.Has(kConfigFile)) {
    FOLIO_ASSIGN_OR_RETURN(const nlohmann::json config,
                           files.ReadJson(kConfigFile));
    FOLIO_RETURN_IF_ERROR(
        ReadConfig(JsonPlace(config, files.PathOf(kConfigFile)), vocabulary,
                   has_template, parts));
  }
  return std::make_unique<BpeTokenizer>(std::move(parts));
}

}  // namespace folio
