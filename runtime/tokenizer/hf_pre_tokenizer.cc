#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/hf_pattern.h"
#include "runtime/tokenizer/hf_text_steps.h"
#include "runtime/tokenizer/named_pre_tokenizers.h"

namespace folio {
namespace {

absl::StatusOr<SplitBehavior> ReadBehavior(const JsonPlace& step) {
  static constexpr std::pair<std::string_view, SplitBehavior> kBehaviors[] = {
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  FOLIO_ASSIGN_OR_RETURN(const std::string name, step.StringAt("behavior"));
  for (const auto& [known, behavior] : kBehaviors) {
    if (known == name) return behavior;
  }
  return step.Error(absl::StrCat(
      "found the behavior \"", name,
      "\"; supported are Removed, Isolated, MergedWithPrevious, MergedWithNext "
      "and Contiguous"));
}

// Gathers the steps of a pre-tokeniser and of those inside it.
class Reader {
 public:
  absl::Status Add(const JsonPlace& place) {
    if (byte_level_) {
      return place.Error("a step after ByteLevel, which must be the last one");
    }
    FOLIO_ASSIGN_OR_RETURN(const std::string type, place.StringAt("type"));
    if (type == "Sequence") return AddSequence(place);
    if (type == "Split") return AddSplit(place);
    if (type == "Digits") return AddDigits(place);
    if (type == "ByteLevel") return AddByteLevel(place);
    if (type == "Metaspace") return AddMetaspace(place);
    return place.Error(absl::StrCat(
        "found the type \"", type,
        "\"; supported are ByteLevel, Split, Digits, Metaspace and Sequence"));
  }

  HfPreTokenizer Finish() && {
    return {PreTokenizer(std::move(steps_)), byte_level_};
  }

 private:
  absl::Status AddSequence(const JsonPlace& place) {
    FOLIO_ASSIGN_OR_RETURN(const JsonPlace list, place.Get("pretokenizers"));
    FOLIO_ASSIGN_OR_RETURN(const std::vector<JsonPlace> parts, list.Elements());
    for (const JsonPlace& part : parts) FOLIO_RETURN_IF_ERROR(Add(part));
    return absl::OkStatus();
  }

  absl::Status AddSplit(const JsonPlace& place) {
    FOLIO_ASSIGN_OR_RETURN(Pattern pattern, ReadHfPattern(place));
    FOLIO_ASSIGN_OR_RETURN(const SplitBehavior behavior, ReadBehavior(place));
    FOLIO_ASSIGN_OR_RETURN(const bool invert, place.BoolAt("invert", false));
    steps_.push_back(Split{std::move(pattern), behavior, invert});
    return absl::OkStatus();
  }

  absl::Status AddDigits(const JsonPlace& place) {
    FOLIO_ASSIGN_OR_RETURN(const bool individual,
                           place.BoolAt("individual_digits", false));
    return AddIsolated(individual ? "\\p{N}" : "\\p{N}+");
  }

  absl::Status AddByteLevel(const JsonPlace& place) {
    FOLIO_ASSIGN_OR_RETURN(const bool adds_space,
                           place.BoolAt("add_prefix_space", true));
    FOLIO_ASSIGN_OR_RETURN(const bool splits, place.BoolAt("use_regex", true));
    if (adds_space) steps_.push_back(PrefixPieces{.prefix = " "});
    if (splits) FOLIO_RETURN_IF_ERROR(AddIsolated(kGpt2Pattern));
    byte_level_ = true;
    return absl::OkStatus();
  }

  // SentencePiece's treatment of spaces: they become a marker, one comes before
  // the text, and words begin with it.
  absl::Status AddMetaspace(const JsonPlace& place) {
    FOLIO_ASSIGN_OR_RETURN(const std::string marker,
                           place.StringAt("replacement"));
    FOLIO_ASSIGN_OR_RETURN(const bool adds_prefix,
                           place.BoolAt("add_prefix_space", true));
    FOLIO_ASSIGN_OR_RETURN(const bool splits, place.BoolAt("split", true));
    FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> scheme_place,
                           place.Find("prepend_scheme"));
    std::string scheme = adds_prefix ? "always" : "never";
    if (scheme_place.has_value()) {
      FOLIO_ASSIGN_OR_RETURN(scheme, scheme_place->String());
    }
    if (scheme != "always" && scheme != "first" && scheme != "never") {
      return scheme_place->Error(absl::StrCat(
          "found \"", scheme, "\"; supported are always, first and never"));
    }
    FOLIO_ASSIGN_OR_RETURN(Pattern space, Pattern::Literal(" "));
    std::vector<NormalizerStep> replace;
    replace.push_back(Replace{std::move(space), marker});
    steps_.push_back(Normalizer(std::move(replace)));
    if (scheme != "never") {
      steps_.push_back(
          PrefixPieces{.prefix = marker, .only_at_start = scheme == "first"});
    }
    if (!splits) return absl::OkStatus();
    absl::StatusOr<Pattern> pattern = Pattern::Literal(marker);
    if (!pattern.ok()) return place.Error("\"replacement\" is empty");
    steps_.push_back(
        Split{*std::move(pattern), SplitBehavior::kMergedWithNext});
    return absl::OkStatus();
  }

  absl::Status AddIsolated(std::string_view regex) {
    FOLIO_ASSIGN_OR_RETURN(Pattern pattern, Pattern::Compile(regex));
    steps_.push_back(Split{std::move(pattern)});
    return absl::OkStatus();
  }

  std::vector<PreTokenizerStep> steps_;
  bool byte_level_ = false;
};

}  // namespace

absl::StatusOr<HfPreTokenizer> ReadHfPreTokenizer(const JsonPlace& root) {
  FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> place,
                         root.Find("pre_tokenizer"));
  Reader reader;
  if (place.has_value()) FOLIO_RETURN_IF_ERROR(reader.Add(*place));
  return std::move(reader).Finish();
}

}  // namespace folio
