// For models that come without any tokenizer.

#ifndef RUNTIME_TOKENIZER_NO_TOKENIZER_H_
#define RUNTIME_TOKENIZER_NO_TOKENIZER_H_

#include <glog/logging.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {

// Encoding fails with FAILED_PRECONDITION, and no token stands for any bytes:
// such a model takes token ids and gives token ids.
class NoTokenizer : public Tokenizer {
 public:
  explicit NoTokenizer(int32_t vocab_size)
      : info_{.kind = "none", .vocab_size = vocab_size} {}

  const TokenizerInfo& info() const override { return info_; }

  absl::StatusOr<std::vector<TokenId>> Encode(
      std::string_view /*text*/,
      const EncodeOptions& /*options*/) const override {
    return absl::FailedPreconditionError(
        "this model has no tokenizer; send token ids instead of text");
  }

  void AppendBytes(TokenId token, std::string& /*bytes*/) const override {
    CHECK(token >= 0 && token < info_.vocab_size)
        << "token " << token << " in a vocabulary of " << info_.vocab_size;
  }

 private:
  TokenizerInfo info_;
};

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_NO_TOKENIZER_H_
