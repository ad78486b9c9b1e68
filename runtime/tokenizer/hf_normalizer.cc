#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/hf_pattern.h"
#include "runtime/tokenizer/hf_text_steps.h"

namespace folio {
namespace {

absl::Status AddStep(const JsonPlace& place,
                     std::vector<NormalizerStep>& steps) {
  FOLIO_ASSIGN_OR_RETURN(const std::string type, place.StringAt("type"));
  if (type == "Sequence") {
    FOLIO_ASSIGN_OR_RETURN(const JsonPlace list, place.Get("normalizers"));
    FOLIO_ASSIGN_OR_RETURN(const std::vector<JsonPlace> parts, list.Elements());
    for (const JsonPlace& part : parts) {
      FOLIO_RETURN_IF_ERROR(AddStep(part, steps));
    }
  } else if (type == "NFC" || type == "NFKC" || type == "NFD" ||
             type == "NFKD") {
    steps.push_back(UnicodeForm{.compatibility = type.size() == 4,
                                .compose = type.ends_with('C')});
  } else if (type == "Prepend") {
    FOLIO_ASSIGN_OR_RETURN(std::string prefix, place.StringAt("prepend"));
    steps.push_back(Prepend{std::move(prefix)});
  } else if (type == "Replace") {
    FOLIO_ASSIGN_OR_RETURN(Pattern pattern, ReadHfPattern(place));
    FOLIO_ASSIGN_OR_RETURN(std::string content, place.StringAt("content"));
    steps.push_back(Replace{std::move(pattern), std::move(content)});
  } else if (type == "Lowercase") {
    steps.push_back(Lowercase{});
  } else {
    return place.Error(absl::StrCat(
        "found the type \"", type,
        "\"; supported are NFC, NFD, NFKC, NFKD, Prepend, Replace, Lowercase "
        "and Sequence"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Normalizer> ReadHfNormalizer(const JsonPlace& root) {
  FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> place,
                         root.Find("normalizer"));
  std::vector<NormalizerStep> steps;
  if (place.has_value()) FOLIO_RETURN_IF_ERROR(AddStep(*place, steps));
  return Normalizer(std::move(steps));
}

}  // namespace folio
