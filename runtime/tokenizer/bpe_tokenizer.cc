#include "runtime/tokenizer/bpe_tokenizer.h"

#include <glog/logging.h>

#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/code_points.h"

namespace folio {
namespace {

// The model counts the places in a piece with 32 bits.
constexpr size_t kMaxPieceBytes = std::numeric_limits<int32_t>::max() - 1;

absl::Status NoTokenFor(std::string_view missing, std::string_view text) {
  const size_t offset = text.find(missing);
  return absl::InvalidArgumentError(absl::StrCat(
      "the text's \"", absl::CHexEscape({missing.data(), missing.size()}), "\"",
      offset == text.npos ? ", after normalising," : " at offset ",
      offset == text.npos ? "" : absl::StrCat(offset),
      " has no token in this model's vocabulary; leave it out, or send token "
      "ids"));
}

// One text on its way to tokens.
class Encoding {
 public:
  Encoding(const BpeTokenizerParts& parts, std::string_view text,
           bool parse_special, std::vector<TokenId>& tokens)
      : parts_(parts),
        text_(text),
        parse_special_(parse_special),
        tokens_(tokens) {}

  absl::Status Run() {
    return parts_.added.ForEachSection(
        text_, parse_special_, [this](const Section& section) {
          if (section.token != kNoToken) return Append(section.token);
          const bool is_at_start = section.text.data() == text_.data();
          if (parts_.normalizer.changes_nothing()) {
            return EncodeNormalized(section.text, is_at_start);
          }
          FOLIO_ASSIGN_OR_RETURN(const std::string normalized,
                                 parts_.normalizer.Apply(section.text));
          return EncodeNormalized(normalized, is_at_start);
        });
  }

 private:
  absl::Status Append(TokenId token) {
    tokens_.push_back(token);
    return absl::OkStatus();
  }

  absl::Status EncodeNormalized(std::string_view text, bool is_at_start) {
    return parts_.normalized_added.ForEachSection(
        text, parse_special_, [&](const Section& section) {
          if (section.token != kNoToken) return Append(section.token);
          const bool is_first = section.text.data() == text.data();
          return parts_.pre_tokenizer.ForEachPiece(
              section.text, is_at_start && is_first,
              [this](std::string_view piece) { return EncodePiece(piece); });
        });
  }

  absl::Status EncodePiece(std::string_view piece) {
    if (piece.size() > kMaxPieceBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a piece of the text has ", piece.size(),
                       " bytes; at most ", kMaxPieceBytes, " can be encoded"));
    }
    std::string missing;
    if (parts_.model->EncodePiece(piece, merger_, tokens_, missing)) {
      return absl::OkStatus();
    }
    return NoTokenFor(missing, text_);
  }

  const BpeTokenizerParts& parts_;
  const std::string_view text_;
  const bool parse_special_;
  std::vector<TokenId>& tokens_;
  BpeMerger merger_;
};

}  // namespace

BpeTokenizer::BpeTokenizer(BpeTokenizerParts parts) : parts_(std::move(parts)) {
  CHECK(parts_.model != nullptr);
  CHECK_EQ(parts_.token_bytes.size(),
           static_cast<size_t>(parts_.info.vocab_size));
}

absl::StatusOr<std::vector<TokenId>> BpeTokenizer::Encode(
    std::string_view text, const EncodeOptions& options) const {
  FOLIO_RETURN_IF_ERROR(CheckUtf8(text));
  std::vector<TokenId> tokens;
  if (options.add_special) tokens = parts_.before;
  FOLIO_RETURN_IF_ERROR(
      Encoding(parts_, text, options.parse_special, tokens).Run());
  if (options.add_special) {
    tokens.insert(tokens.end(), parts_.after.begin(), parts_.after.end());
  }
  return tokens;
}

void BpeTokenizer::AppendBytes(TokenId token, std::string& bytes) const {
  CHECK(token >= 0 && token < parts_.info.vocab_size)
      << "token " << token << " in a vocabulary of " << parts_.info.vocab_size;
  bytes += parts_.token_bytes[token];
}

}  // namespace folio
