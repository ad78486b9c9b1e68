// The texts of a vocabulary's tokens, both ways.

#ifndef RUNTIME_TOKENIZER_VOCABULARY_H_
#define RUNTIME_TOKENIZER_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/base/types.h"

namespace folio {

// No token has this id.
inline constexpr TokenId kNoToken = -1;

// Immutable, thread-safe. Texts are byte strings.
class Vocabulary {
 public:
  // `texts[id]` is the text of token `id`; empty for an id that no text
  // becomes. Of two tokens with one text, Find knows the first.
  explicit Vocabulary(std::span<const std::string> texts);

  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  int32_t size() const { return static_cast<int32_t>(ends_.size()); }

  // REQUIRES: 0 <= id < size().
  std::string_view TextOf(TokenId id) const {
    const size_t begin = id == 0 ? 0 : ends_[id - 1];
    return {bytes_.data() + begin, ends_[id] - begin};
  }

  // The token with this text, or kNoToken.
  TokenId Find(std::string_view text) const {
    if (text.size() > longest_) return kNoToken;
    const auto found = ids_.find(text);
    return found == ids_.end() ? kNoToken : found->second;
  }

 private:
  // All texts, one after another. (A moved std::string may move its bytes, to
  // which the keys below point; a vector does not.)
  std::vector<char> bytes_;
  std::vector<size_t> ends_;  // [size()] where each text ends in bytes_.
  size_t longest_ = 0;
  absl::flat_hash_map<std::string_view, TokenId> ids_;
};

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_VOCABULARY_H_
