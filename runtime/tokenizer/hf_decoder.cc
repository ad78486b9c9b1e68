#include "runtime/tokenizer/hf_decoder.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/byte_level_alphabet.h"
#include "runtime/tokenizer/sentencepiece_text.h"

namespace folio {
namespace {

constexpr char kSupported[] =
    "supported are ByteLevel, Metaspace, and a Sequence of Replace, "
    "ByteFallback, Fuse and Strip";

// Only a String can be replaced here: what a token stands for must not depend
// on its neighbours.
absl::Status AddReplacement(const JsonPlace& place, HfDecoder& decoder) {
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace pattern, place.Get("pattern"));
  FOLIO_ASSIGN_OR_RETURN(std::string from, pattern.StringAt("String"));
  if (from.empty()) return pattern.Error("\"String\" is empty");
  FOLIO_ASSIGN_OR_RETURN(std::string to, place.StringAt("content"));
  decoder.replacements.emplace_back(std::move(from), std::move(to));
  return absl::OkStatus();
}

absl::Status AddStrip(const JsonPlace& place, HfDecoder& decoder) {
  FOLIO_ASSIGN_OR_RETURN(const std::string content, place.StringAt("content"));
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace start, place.Get("start"));
  FOLIO_ASSIGN_OR_RETURN(const int64_t at_start, start.Integer());
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace stop, place.Get("stop"));
  FOLIO_ASSIGN_OR_RETURN(const int64_t at_end, stop.Integer());
  if (content != " " || at_start < 0 || at_start > 1 || at_end != 0) {
    return place.Error(absl::StrCat(
        "found content \"", content, "\", start ", at_start, ", stop ", at_end,
        "; supported is one space at the start, with stop 0"));
  }
  decoder.strips_space = at_start == 1;
  return absl::OkStatus();
}

absl::Status AddMetaspace(const JsonPlace& place, HfDecoder& decoder) {
  FOLIO_ASSIGN_OR_RETURN(std::string marker, place.StringAt("replacement"));
  if (marker.empty()) return place.Error("\"replacement\" is empty");
  FOLIO_ASSIGN_OR_RETURN(const bool adds_prefix,
                         place.BoolAt("add_prefix_space", true));
  FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> scheme,
                         place.Find("prepend_scheme"));
  decoder.strips_space = adds_prefix;
  if (scheme.has_value()) {
    FOLIO_ASSIGN_OR_RETURN(const std::string name, scheme->String());
    decoder.strips_space = name != "never";
  }
  decoder.replacements.emplace_back(std::move(marker), " ");
  return absl::OkStatus();
}

// Adds the steps of a Sequence, which must be in the order that BytesOf has.
absl::Status AddSequence(const JsonPlace& place, HfDecoder& decoder) {
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace list, place.Get("decoders"));
  FOLIO_ASSIGN_OR_RETURN(const std::vector<JsonPlace> steps, list.Elements());
  bool is_fused = false;
  for (const JsonPlace& step : steps) {
    FOLIO_ASSIGN_OR_RETURN(const std::string type, step.StringAt("type"));
    if (type == "Fuse") {
      is_fused = true;
    } else if (type == "Strip" && is_fused) {
      FOLIO_RETURN_IF_ERROR(AddStrip(step, decoder));
    } else if (type == "Replace" && !is_fused && !decoder.byte_fallback) {
      FOLIO_RETURN_IF_ERROR(AddReplacement(step, decoder));
    } else if (type == "ByteFallback" && !is_fused) {
      decoder.byte_fallback = true;
    } else {
      return step.Error(absl::StrCat("found the type \"", type, "\" here; ",
                                     kSupported, ", in this order"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string HfDecoder::BytesOf(std::string_view text) const {
  if (byte_level) {
    return BytesOfByteLevelText(text).value_or(std::string(text));
  }
  std::string result(text);
  for (const auto& [from, to] : replacements) {
    result = absl::StrReplaceAll(result, {{from, to}});
  }
  if (byte_fallback) {
    if (const auto byte = ByteOfToken(result)) return std::string(1, *byte);
  }
  return result;
}

absl::StatusOr<HfDecoder> ReadHfDecoder(const JsonPlace& root) {
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace place, root.Get("decoder"));
  if (place.value().is_null()) {
    return place.Error(absl::StrCat("found null; ", kSupported));
  }
  FOLIO_ASSIGN_OR_RETURN(const std::string type, place.StringAt("type"));
  HfDecoder decoder;
  if (type == "ByteLevel") {
    decoder.byte_level = true;
  } else if (type == "Metaspace") {
    FOLIO_RETURN_IF_ERROR(AddMetaspace(place, decoder));
  } else if (type == "Sequence") {
    FOLIO_RETURN_IF_ERROR(AddSequence(place, decoder));
  } else {
    return place.Error(
        absl::StrCat("found the type \"", type, "\"; ", kSupported));
  }
  return decoder;
}

}  // namespace folio
