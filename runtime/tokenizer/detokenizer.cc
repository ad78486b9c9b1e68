#include "runtime/tokenizer/detokenizer.h"

#include <string_view>

#include "runtime/base/utf8.h"

namespace folio {

void Detokenizer::Append(TokenId token, std::string& text) {
  tokenizer_->AppendBytes(token, pending_);
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
}

}  // namespace folio
