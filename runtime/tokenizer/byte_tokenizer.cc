#include "runtime/tokenizer/byte_tokenizer.h"

#include <glog/logging.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace folio {
namespace {

constexpr int32_t kNumByteValues = 256;

}  // namespace

ByteTokenizer::ByteTokenizer(int32_t vocab_size,
                             const std::vector<TokenId>& special_tokens)
    : info_{.kind = "bytes",
            .vocab_size = vocab_size,
            .num_special_tokens = static_cast<int32_t>(special_tokens.size())} {
  CHECK_GT(vocab_size, 0);
  is_byte_.assign(std::min(vocab_size, kNumByteValues), true);
  for (const TokenId token : special_tokens) {
    CHECK(token >= 0 && token < vocab_size)
        << "special token " << token << " in a vocabulary of " << vocab_size;
    if (token < kNumByteValues) is_byte_[token] = false;
  }
}

absl::StatusOr<std::vector<TokenId>> ByteTokenizer::Encode(
    std::string_view text, const EncodeOptions& /*options*/) const {
  std::vector<TokenId> tokens;
  tokens.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    if (byte >= is_byte_.size() || !is_byte_[byte]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the text's byte 0x", absl::Hex(byte, absl::kZeroPad2), " at offset ",
          i, " has no token in this model's vocabulary of ", info_.vocab_size,
          byte < is_byte_.size() ? ", where its id is special" : "",
          "; leave it out, or send token ids"));
    }
    tokens.push_back(byte);
  }
  return tokens;
}

void ByteTokenizer::AppendBytes(TokenId token, std::string& bytes) const {
  CHECK(token >= 0 && token < info_.vocab_size)
      << "token " << token << " in a vocabulary of " << info_.vocab_size;
  if (static_cast<size_t>(token) < is_byte_.size() && is_byte_[token]) {
    bytes.push_back(static_cast<char>(token));
  }
}

}  // namespace folio
