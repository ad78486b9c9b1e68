// What the fuzz targets of tokenizers have in common.

#ifndef TESTS_FUZZ_USE_TOKENIZER_H_
#define TESTS_FUZZ_USE_TOKENIZER_H_

#include "runtime/tokenizer/tokenizer.h"

namespace folio {

// Encodes some texts, decodes every token, and CHECKs that ids are in range and
// that a text either is refused as it should or becomes tokens.
void UseTokenizer(const Tokenizer& tokenizer);

}  // namespace folio

#endif  // TESTS_FUZZ_USE_TOKENIZER_H_
