#include "runtime/tokenizer/bpe_merger.h"

#include <algorithm>

namespace folio {
namespace {

// In the place of a symbol that was joined to the one before it. Negative
// symbols that callers use are characters, so far nearer to zero.
constexpr TokenId kJoined = INT32_MIN;

}  // namespace

bool BpeMerger::IsLater(const Candidate& a, const Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
}

bool BpeMerger::MakeCandidate(const MergeTable& merges,
                              const std::vector<TokenId>& symbols,
                              int32_t place, Candidate& candidate) const {
  const int32_t next = nodes_[place].next;
  if (static_cast<size_t>(next) == symbols.size()) return false;
  const TokenId left = symbols[place];
  const TokenId right = symbols[next];
  const Merge* const merge = merges.Find(left, right);
  if (merge == nullptr) return false;
  candidate = {merge->rank, place, left, right, merge->merged};
  return true;
}

void BpeMerger::Push(const MergeTable& merges,
                     const std::vector<TokenId>& symbols, int32_t place) {
  Candidate candidate;
  if (!MakeCandidate(merges, symbols, place, candidate)) return;
  heap_.push_back(candidate);
  std::push_heap(heap_.begin(), heap_.end(), IsLater);
  ++num_candidates_;
}

void BpeMerger::Join(const MergeTable& merges, const Candidate& best,
                     std::vector<TokenId>& symbols) {
  Node& left = nodes_[best.place];
  const int32_t right = left.next;
  // Since the candidate was made, either may have been joined to another; then
  // it is no longer what it was.
  if (symbols[best.place] != best.left ||
      static_cast<size_t>(right) == symbols.size() ||
      symbols[right] != best.right) {
    return;
  }
  symbols[best.place] = best.merged;
  symbols[right] = kJoined;
  left.next = nodes_[right].next;
  if (static_cast<size_t>(left.next) < symbols.size()) {
    nodes_[left.next].previous = best.place;
  }
  if (left.previous >= 0) Push(merges, symbols, left.previous);
  Push(merges, symbols, best.place);
}

void BpeMerger::Run(const MergeTable& merges, std::vector<TokenId>& symbols) {
  const auto size = static_cast<int32_t>(symbols.size());
  nodes_.resize(symbols.size());
  heap_.clear();
  for (int32_t i = 0; i < size; ++i) nodes_[i] = {i - 1, i + 1};
  for (int32_t i = 0; i < size; ++i) {
    Candidate candidate;
    if (MakeCandidate(merges, symbols, i, candidate)) {
      heap_.push_back(candidate);
    }
  }
  num_candidates_ += static_cast<int64_t>(heap_.size());
  std::make_heap(heap_.begin(), heap_.end(), IsLater);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), IsLater);
    const Candidate best = heap_.back();
    heap_.pop_back();
    Join(merges, best, symbols);
  }
  std::erase(symbols, kJoined);
}

}  // namespace folio
