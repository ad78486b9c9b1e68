#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/code_points.h"
#include "runtime/tokenizer/gguf_models.h"
#include "runtime/tokenizer/sentencepiece_text.h"

namespace folio {
namespace {

constexpr char kTokensKey[] = "tokenizer.ggml.tokens";
constexpr char kScoresKey[] = "tokenizer.ggml.scores";

// All ways to cut a token in two are looked up, which takes quadratic time.
constexpr size_t kMaxTokenBytes = 1024;

// The texts that text may become; empty for other tokens.
absl::StatusOr<std::vector<std::string>> NormalTexts(
    const GgufFile& file, const GgufVocabulary& vocabulary) {
  std::vector<std::string> texts(vocabulary.texts.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.types[id] != GgufTokenType::kNormal) continue;
    if (vocabulary.texts[id].size() > kMaxTokenBytes) {
      return GgufKeyError(
          file, kTokensKey,
          absl::StrCat("token ", id, " has ", vocabulary.texts[id].size(),
                       " bytes; at most ", kMaxTokenBytes, " are supported"));
    }
    texts[id] = vocabulary.texts[id];
  }
  return texts;
}

// The rank of each token: how many different scores are higher than its own.
absl::StatusOr<std::vector<int32_t>> ReadRanks(const GgufFile& file,
                                               int32_t vocab_size) {
  FOLIO_ASSIGN_OR_RETURN(const std::vector<double> scores,
                         file.Numbers(kScoresKey));
  if (scores.size() != static_cast<size_t>(vocab_size)) {
    return GgufKeyError(file, kScoresKey,
                        absl::StrCat("found ", scores.size(), " scores for ",
                                     vocab_size, " tokens"));
  }
  for (size_t id = 0; id < scores.size(); ++id) {
    if (!std::isfinite(scores[id])) {
      return GgufKeyError(
          file, kScoresKey,
          absl::StrCat("the score of token ", id, " is ", scores[id],
                       "; expected a finite number"));
    }
  }
  std::vector<double> descending = scores;
  std::ranges::sort(descending, std::greater<>());
  descending.erase(std::unique(descending.begin(), descending.end()),
                   descending.end());
  std::vector<int32_t> ranks;
  ranks.reserve(scores.size());
  for (const double score : scores) {
    const auto found =
        std::ranges::lower_bound(descending, score, std::greater<>());
    ranks.push_back(static_cast<int32_t>(found - descending.begin()));
  }
  return ranks;
}

// Two tokens may be joined when the two texts together are a token.
MergeTable MergesOf(const Vocabulary& vocabulary,
                    const std::vector<int32_t>& ranks) {
  MergeTable merges;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.TextOf(id);
    // Of tokens with one text, text becomes the first.
    if (vocabulary.Find(text) != id) continue;
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const TokenId left = vocabulary.Find(text.substr(0, cut));
      const TokenId right = vocabulary.Find(text.substr(cut));
      if (left != kNoToken && right != kNoToken) {
        merges.Add(left, right, {ranks[id], id});
      }
    }
  }
  return merges;
}

absl::StatusOr<Normalizer> ReadNormalizer(const GgufFile& file) {
  FOLIO_ASSIGN_OR_RETURN(
      const bool adds_space,
      ReadGgufBool(file, "tokenizer.ggml.add_space_prefix", true));
  FOLIO_ASSIGN_OR_RETURN(
      const bool removes_spaces,
      ReadGgufBool(file, "tokenizer.ggml.remove_extra_whitespaces", false));
  std::vector<NormalizerStep> steps;
  const auto replace = [&steps](std::string_view regex,
                                std::string_view content) -> absl::Status {
    FOLIO_ASSIGN_OR_RETURN(Pattern pattern, Pattern::Compile(regex));
    steps.push_back(Replace{std::move(pattern), std::string(content)});
    return absl::OkStatus();
  };
  if (removes_spaces) {
    FOLIO_RETURN_IF_ERROR(replace("\\A +| +\\z", ""));
    FOLIO_RETURN_IF_ERROR(replace(" +", " "));
  }
  if (adds_space) steps.push_back(Prepend{" "});
  FOLIO_RETURN_IF_ERROR(replace(" ", kSpaceMarker));
  return Normalizer(std::move(steps));
}

std::vector<std::string> BytesOfTokens(const GgufVocabulary& vocabulary) {
  std::vector<std::string> bytes(vocabulary.texts.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.texts[id];
    switch (vocabulary.types[id]) {
      case GgufTokenType::kNormal:
        bytes[id] = WithSpacesForMarkers(text);
        break;
      case GgufTokenType::kUserDefined:
        bytes[id] = text;
        break;
      case GgufTokenType::kByte:
        if (const auto byte = ByteOfToken(text)) bytes[id] = *byte;
        break;
      default:
        break;
    }
  }
  return bytes;
}

absl::StatusOr<BpeOptions> ReadOptions(const GgufFile& file,
                                       const GgufVocabulary& vocabulary) {
  BpeOptions options;
  options.units = BpeUnits::kCharacters;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.types[id] != GgufTokenType::kByte) continue;
    const std::optional<char> byte = ByteOfToken(vocabulary.texts[id]);
    if (!byte.has_value()) {
      return GgufKeyError(
          file, kTokensKey,
          absl::StrCat("token ", id, " is a byte, and its text is \"",
                       std::string(vocabulary.texts[id]),
                       "\"; expected the form <0x0A>"));
    }
    options.byte_tokens[static_cast<uint8_t>(*byte)] = id;
  }
  FOLIO_ASSIGN_OR_RETURN(
      options.unknown, ReadGgufTokenId(file, "tokenizer.ggml.unknown_token_id",
                                       vocabulary.size()));
  return options;
}

}  // namespace

absl::StatusOr<GgufModel> ReadGgufSentencePiece(
    const GgufFile& file, const GgufVocabulary& vocabulary) {
  GgufModel model;
  model.adds_bos = true;
  FOLIO_ASSIGN_OR_RETURN(const std::vector<std::string> normal,
                         NormalTexts(file, vocabulary));
  FOLIO_ASSIGN_OR_RETURN(const std::vector<int32_t> ranks,
                         ReadRanks(file, vocabulary.size()));
  FOLIO_ASSIGN_OR_RETURN(const BpeOptions options,
                         ReadOptions(file, vocabulary));
  FOLIO_ASSIGN_OR_RETURN(model.parts.normalizer, ReadNormalizer(file));
  Vocabulary texts(normal);
  MergeTable merges = MergesOf(texts, ranks);
  model.parts.info.kind = "SentencePiece BPE";
  model.parts.info.num_merges = static_cast<int32_t>(merges.size());
  model.parts.token_bytes = BytesOfTokens(vocabulary);
  FOLIO_ASSIGN_OR_RETURN(
      model.parts.adds_leading_space,
      ReadGgufBool(file, "tokenizer.ggml.add_space_prefix", true));
  model.parts.model = std::make_unique<const BpeModel>(
      std::move(texts), std::move(merges), options);
  return model;
}

}  // namespace folio
