// Byte pair encoding's one operation: joining neighbouring symbols.

#ifndef RUNTIME_TOKENIZER_BPE_MERGER_H_
#define RUNTIME_TOKENIZER_BPE_MERGER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/base/types.h"

namespace folio {

struct Merge {
  int32_t rank;  // Lower ones come first.
  TokenId merged;
};

// Which pairs of tokens may be joined. Lookups are thread-safe.
class MergeTable {
 public:
  void Reserve(size_t num_merges) { merges_.reserve(num_merges); }

  // Of equal pairs, the one that was added first counts.
  void Add(TokenId left, TokenId right, const Merge& merge) {
    merges_.try_emplace(Key(left, right), merge);
  }

  // Null when the two may not be joined.
  const Merge* Find(TokenId left, TokenId right) const {
    const auto found = merges_.find(Key(left, right));
    return found == merges_.end() ? nullptr : &found->second;
  }

  size_t size() const { return merges_.size(); }

 private:
  static uint64_t Key(TokenId left, TokenId right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 |
           static_cast<uint32_t>(right);
  }

  absl::flat_hash_map<uint64_t, Merge> merges_;
};

// Joins pairs until none is left that may be joined: always one of the lowest
// rank, and of equal ranks the leftmost. (Sennrich et al. 2016, "Neural Machine
// Translation of Rare Words with Subword Units", section 3.2, whose table of
// merges is in the order of ranks; with SentencePiece, ranks order the scores.)
// Holds memory for reuse, so each thread has its own.
class BpeMerger {
 public:
  // Joins `symbols` in place. A symbol without merges may be any number.
  // O(n log n) time and O(n) memory for n symbols.
  // REQUIRES: what joins to one token always has the same text, so that a pair
  // joined is never equal to one of its parts; fewer than 2^31 symbols.
  void Run(const MergeTable& merges, std::vector<TokenId>& symbols);

  // A vector that callers may gather symbols in, so that it is reused too.
  std::vector<TokenId>& symbols() { return symbols_; }

  // How many candidates have gone through the queue since this was made.
  int64_t num_candidates() const { return num_candidates_; }

 private:
  struct Node {
    int32_t previous;  // -1 for the first.
    int32_t next;      // The number of symbols for the last.
  };
  struct Candidate {
    int32_t rank;
    int32_t place;  // Of the left symbol.
    TokenId left;
    TokenId right;
    TokenId merged;
  };
  static bool IsLater(const Candidate& a, const Candidate& b);

  bool MakeCandidate(const MergeTable& merges,
                     const std::vector<TokenId>& symbols, int32_t place,
                     Candidate& candidate) const;
  void Push(const MergeTable& merges, const std::vector<TokenId>& symbols,
            int32_t place);
  void Join(const MergeTable& merges, const Candidate& best,
            std::vector<TokenId>& symbols);

  std::vector<TokenId> symbols_;
  std::vector<Node> nodes_;
  std::vector<Candidate> heap_;
  int64_t num_candidates_ = 0;
};

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_BPE_MERGER_H_
