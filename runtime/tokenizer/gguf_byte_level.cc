#include <glog/logging.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"
#include "runtime/tokenizer/byte_level_alphabet.h"
#include "runtime/tokenizer/gguf_models.h"
#include "runtime/tokenizer/named_pre_tokenizers.h"

namespace folio {
namespace {

constexpr char kPreKey[] = "tokenizer.ggml.pre";
constexpr char kMergesKey[] = "tokenizer.ggml.merges";
constexpr char kDefaultPreTokenizer[] = "gpt-2";

absl::StatusOr<std::string_view> ReadPreTokenizerName(const GgufFile& file) {
  if (file.Has(kPreKey)) return file.String(kPreKey);
  LOG(WARNING)
      << "'" << file.path() << "' has no " << kPreKey
      << ", so text is split by the rules of GPT-2; if the model is of "
         "another family, its tokens may not be those it was trained "
         "with";
  return kDefaultPreTokenizer;
}

// What each token stands for: the bytes that it writes in the alphabet; as it
// is where it doesn't use the alphabet, as tokens added later don't.
std::vector<std::string> BytesOfTokens(const GgufVocabulary& vocabulary) {
  std::vector<std::string> bytes(vocabulary.texts.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.texts[id];
    const GgufTokenType type = vocabulary.types[id];
    if (type == GgufTokenType::kUserDefined) {
      bytes[id] = text;
    } else if (type == GgufTokenType::kNormal || type == GgufTokenType::kByte) {
      bytes[id] = BytesOfByteLevelText(text).value_or(std::string(text));
    }
  }
  return bytes;
}

// The two parts of a merge as bytes. Nothing when it doesn't have two.
std::optional<std::pair<std::string, std::string>> PartsOfMerge(
    std::string_view merge) {
  const size_t space = merge.find(' ');
  if (space == merge.npos) return std::nullopt;
  std::optional<std::string> left =
      BytesOfByteLevelText(merge.substr(0, space));
  std::optional<std::string> right =
      BytesOfByteLevelText(merge.substr(space + 1));
  if (!left || !right || left->empty() || right->empty()) return std::nullopt;
  return std::pair(*std::move(left), *std::move(right));
}

absl::StatusOr<MergeTable> ReadMerges(const GgufFile& file,
                                      const Vocabulary& vocabulary) {
  FOLIO_ASSIGN_OR_RETURN(const std::span<const std::string_view> merges,
                         file.Strings(kMergesKey));
  MergeTable table;
  table.Reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto complain = [&](std::string_view what) {
      return GgufKeyError(
          file, kMergesKey,
          absl::StrCat("merge ", rank, " is \"", std::string(merges[rank]),
                       "\"; ", std::string(what)));
    };
    if (!IsValidUtf8(merges[rank])) return complain("expected valid UTF-8");
    const auto parts = PartsOfMerge(merges[rank]);
    if (!parts.has_value()) {
      return complain(
          "expected two tokens in GPT-2's alphabet with a space between them");
    }
    const TokenId left = vocabulary.Find(parts->first);
    const TokenId right = vocabulary.Find(parts->second);
    const TokenId merged = vocabulary.Find(parts->first + parts->second);
    if (left == kNoToken || right == kNoToken || merged == kNoToken) {
      return complain(absl::StrCat(left == kNoToken    ? "its first part"
                                   : right == kNoToken ? "its second part"
                                                       : "what it makes",
                                   " is not in tokenizer.ggml.tokens"));
    }
    table.Add(left, right, {static_cast<int32_t>(rank), merged});
  }
  return table;
}

}  // namespace

absl::StatusOr<GgufModel> ReadGgufByteLevelBpe(
    const GgufFile& file, const GgufVocabulary& vocabulary) {
  FOLIO_ASSIGN_OR_RETURN(const std::string_view name,
                         ReadPreTokenizerName(file));
  absl::StatusOr<NamedPreTokenizer> named = FindNamedPreTokenizer(name);
  if (!named.ok()) {
    return GgufKeyError(file, kPreKey, std::string(named.status().message()));
  }
  GgufModel model;
  model.adds_bos = named->adds_bos;
  model.parts.info.kind = "byte-level BPE";
  model.parts.info.pre_tokenizer = name;
  model.parts.pre_tokenizer = std::move(named->pre_tokenizer);
  if (named->composes_text) {
    std::vector<NormalizerStep> steps;
    steps.push_back(UnicodeForm{});
    model.parts.normalizer = Normalizer(std::move(steps));
  }
  model.parts.token_bytes = BytesOfTokens(vocabulary);
  Vocabulary texts(model.parts.token_bytes);
  FOLIO_ASSIGN_OR_RETURN(MergeTable merges, ReadMerges(file, texts));
  model.parts.info.num_merges = static_cast<int32_t>(merges.size());
  BpeOptions options;
  options.units = BpeUnits::kBytes;
  options.takes_whole_pieces = named->takes_whole_pieces;
  model.parts.model = std::make_unique<const BpeModel>(
      std::move(texts), std::move(merges), options);
  return model;
}

}  // namespace folio
