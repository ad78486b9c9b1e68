// The dialect of the regular expressions in tokenizer.json.

#ifndef RUNTIME_TOKENIZER_ONIGURUMA_SYNTAX_H_
#define RUNTIME_TOKENIZER_ONIGURUMA_SYNTAX_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace folio {

// Files of tokenizers are written for Oniguruma with Ruby's syntax
// (https://github.com/kkos/oniguruma/blob/master/doc/RE); we match with PCRE2.
// Returns the expression that means the same to PCRE2 in UTF, UCP and
// multi-line mode. The two differ in what \s, \w and \b are; INVALID_ARGUMENT
// says which construct has another meaning in the other dialect and isn't
// translated.
absl::StatusOr<std::string> TranslateOniguruma(std::string_view regex);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_ONIGURUMA_SYNTAX_H_
