#include "runtime/tokenizer/vocabulary.h"

#include <algorithm>

namespace folio {

Vocabulary::Vocabulary(std::span<const std::string> texts) {
  size_t num_bytes = 0;
  for (const std::string& text : texts) num_bytes += text.size();
  bytes_.reserve(num_bytes);
  ends_.reserve(texts.size());
  for (const std::string& text : texts) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    ends_.push_back(bytes_.size());
    longest_ = std::max(longest_, text.size());
  }
  ids_.reserve(texts.size());
  for (TokenId id = 0; id < size(); ++id) {
    if (!TextOf(id).empty()) ids_.try_emplace(TextOf(id), id);
  }
}

}  // namespace folio
