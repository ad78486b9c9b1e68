#include "runtime/tokenizer/detokenizer.h"

#include <string_view>

#include "runtime/base/utf8.h"

namespace folio {

void Detokenizer::Append(TokenId token, std::string& text) {
  if (token >= tokenizer_->info().vocab_size) return;
  tokenizer_->AppendBytes(token, pending_);
  if (is_at_start_ && !pending_.empty()) {
    if (pending_.front() == ' ') pending_.erase(0, 1);
    is_at_start_ = false;
  }
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Front front = FrontOfUtf8(rest);
    if (front.kind == Utf8Kind::kIncomplete) break;
    text += front.kind == Utf8Kind::kCharacter ? rest.substr(0, front.length)
                                               : kReplacementCharacter;
    rest.remove_prefix(front.length);
  }
  pending_.erase(0, pending_.size() - rest.size());
}

void Detokenizer::Finish(std::string& text) {
  // An incomplete character is one maximal subpart.
  if (!pending_.empty()) text += kReplacementCharacter;
  pending_.clear();
  is_at_start_ = strips_space_;
}

std::string Decode(const Tokenizer& tokenizer,
                   std::span<const TokenId> tokens) {
  Detokenizer detokenizer(&tokenizer, TextStart::kStart);
  std::string text;
  for (const TokenId token : tokens) detokenizer.Append(token, text);
  detokenizer.Finish(text);
  return text;
}

}  // namespace folio
