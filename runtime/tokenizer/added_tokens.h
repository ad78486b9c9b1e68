// Tokens that are found in text before it is split and merged.

#ifndef RUNTIME_TOKENIZER_ADDED_TOKENS_H_
#define RUNTIME_TOKENIZER_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "runtime/base/types.h"
#include "runtime/tokenizer/vocabulary.h"

namespace folio {

struct AddedToken {
  TokenId id = kNoToken;
  std::string content;
  bool special = false;      // Found only where special tokens are asked for.
  bool single_word = false;  // Not beside a letter, digit or '_'.
  bool lstrip = false;       // Takes the white space before it along.
  bool rstrip = false;       // And after it.
};

// Either text without added tokens, or one token.
struct Section {
  std::string_view text;
  TokenId token = kNoToken;
};

// Immutable, thread-safe.
class AddedTokens {
 public:
  AddedTokens() = default;
  // Of two tokens with equal contents, the first counts. Those without content
  // are never found.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  // Calls `visit` for each section of `text`, in order; texts are not empty.
  // The leftmost token is taken, and of those that begin there the longest. The
  // first error of `visit` ends it.
  // O(text's length x longest content's length), usually O(text's length).
  // REQUIRES: `text` is valid UTF-8.
  using Visitor = absl::FunctionRef<absl::Status(const Section& section)>;
  absl::Status ForEachSection(std::string_view text, bool parse_special,
                              Visitor visit) const;

 private:
  // Places in the contents' tree of prefixes; 0 is its root.
  using Node = int32_t;

  const AddedToken* LongestAt(std::string_view text, bool parse_special) const;

  std::vector<AddedToken> tokens_;
  // (node, byte) to the node below.
  absl::flat_hash_map<uint64_t, Node> children_;
  std::vector<int32_t> token_at_ = {-1};  // [nodes] index into tokens_, or -1.
  std::array<bool, 256> may_begin_ = {};  // The contents' first bytes.
};

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_ADDED_TOKENS_H_
