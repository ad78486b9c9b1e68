#include "runtime/tokenizer/hf_pattern.h"

#include <optional>
#include <string>

#include "runtime/base/status_macros.h"

namespace folio {

absl::StatusOr<Pattern> ReadHfPattern(const JsonPlace& step) {
  FOLIO_ASSIGN_OR_RETURN(const JsonPlace pattern, step.Get("pattern"));
  FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> text,
                         pattern.Find("String"));
  FOLIO_ASSIGN_OR_RETURN(const std::optional<JsonPlace> regex,
                         pattern.Find("Regex"));
  if (text.has_value() == regex.has_value()) {
    return pattern.Error("expected either \"String\" or \"Regex\"");
  }
  const JsonPlace& place = text.has_value() ? *text : *regex;
  FOLIO_ASSIGN_OR_RETURN(const std::string source, place.String());
  absl::StatusOr<Pattern> compiled =
      text.has_value() ? Pattern::Literal(source) : Pattern::Compile(source);
  if (!compiled.ok()) {
    return place.Error(std::string(compiled.status().message()));
  }
  return compiled;
}

}  // namespace folio
