#include "tests/fuzz/use_tokenizer.h"

#include <glog/logging.h>

#include <string>
#include <string_view>
#include <vector>

namespace folio {
namespace {

void CheckId(const Tokenizer& tokenizer, TokenId token) {
  CHECK_GE(token, 0);
  CHECK_LT(token, tokenizer.info().vocab_size);
}

void EncodeAndDecode(const Tokenizer& tokenizer, std::string_view text,
                     const EncodeOptions& options) {
  const auto tokens = tokenizer.Encode(text, options);
  if (!tokens.ok()) {
    CHECK(tokens.status().code() == absl::StatusCode::kInvalidArgument)
        << tokens.status();
    return;
  }
  std::string bytes;
  for (const TokenId token : *tokens) {
    CheckId(tokenizer, token);
    tokenizer.AppendBytes(token, bytes);
  }
}

}  // namespace

void UseTokenizer(const Tokenizer& tokenizer) {
  const TokenizerInfo& info = tokenizer.info();
  if (info.bos_token.has_value()) CheckId(tokenizer, *info.bos_token);
  for (const TokenId token : info.eos_tokens) CheckId(tokenizer, token);
  std::string bytes;
  for (TokenId token = 0; token < info.vocab_size; ++token) {
    tokenizer.AppendBytes(token, bytes);
  }
  for (const std::string_view text :
       {"", "ab abab  1234\n", "<s>ab</s>", "\u00e9\u2581\U0001F600", "\xFF"}) {
    for (const bool flag : {false, true}) {
      EncodeAndDecode(tokenizer, text,
                      {.add_special = flag, .parse_special = flag});
    }
  }
}

}  // namespace folio
