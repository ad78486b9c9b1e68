// Finds full pages by the tokens that they and all pages before them hold.

#ifndef CACHE_PREFIX_INDEX_H_
#define CACHE_PREFIX_INDEX_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cache/page_table.h"
#include "runtime/base/types.h"

namespace folio {

// The hash of a page's tokens, given that of everything before them. Any
// function will do: tokens are compared whenever hashes are equal, so a bad one
// only finds less.
using PrefixHash = uint64_t (*)(uint64_t before,
                                std::span<const TokenId> tokens);
uint64_t HashTokens(uint64_t before, std::span<const TokenId> tokens);

// A forest of nodes, one for each run of tokens that fills a page, below the
// run before it. A root stands for a salt: what else, besides tokens, decides
// what K/V is (the model, an adapter) and who may find it (the tenant). So a
// node names a salt and all tokens from the first to its last.
//
// A node has a page, which holds its K/V, or none: when the page was given up,
// or before there is one. Nodes are kept while they have a page, a child or a
// pin, and forgotten with the last of these.
//
// The index neither holds nor counts references; which pages live is KvCache's
// business. Looking up or adding a node is O(page size): hashes are chained,
// and parent and tokens are compared on a hit, which by induction compares all
// of the prefix. Memory for as many nodes as there are pages is taken at the
// start. Not thread-safe.
class PrefixIndex {
 public:
  PrefixIndex(int32_t page_size, int32_t num_pages, PrefixHash hash);

  // The root of `salt`; kNoPrefixNode when there is none.
  PrefixNode FindRoot(std::string_view salt) const;
  // The child of `parent` that holds `tokens`; kNoPrefixNode likewise.
  // REQUIRES: tokens.size() == page_size.
  PrefixNode FindChild(PrefixNode parent,
                       std::span<const TokenId> tokens) const;

  // The same, but a node that is missing is made, without a page. kNoPrefixNode
  // when another node has the same hash: of two such prefixes only the first
  // can be found. Whoever makes a node gives it a page or a pin before the next
  // node is forgotten.
  PrefixNode MakeRoot(std::string_view salt);
  PrefixNode MakeChild(PrefixNode parent, std::span<const TokenId> tokens);

  // kNoPage: it has none.
  PageId page_of(PrefixNode node) const { return At(node).page; }
  // The node that has this page; kNoPrefixNode: none has.
  PrefixNode node_of(PageId page) const { return nodes_of_[ToIndex(page)]; }
  bool HasPage(PageId page) const { return node_of(page) != kNoPrefixNode; }
  int32_t num_pages() const { return num_pages_; }
  int32_t num_nodes() const { return num_nodes_; }

  // REQUIRES: `node` has no page, and `page` no node.
  void SetPage(PrefixNode node, PageId page);
  // The page can no longer be found. REQUIRES: it has a node.
  void RemovePage(PageId page);

  // While it has pins, a node is kept.
  void Pin(PrefixNode node);
  // REQUIRES: it has a pin. Amortised O(1): forgetting walks up a chain of
  // nodes that each were made once.
  void Unpin(PrefixNode node);

  // CHECKs that counts, links and the hash table agree, in O(nodes + pages).
  void CheckInvariants() const;

 private:
  struct Node {
    uint64_t hash = 0;
    PrefixNode parent = kNoPrefixNode;  // Of a root, and of none that is free.
    PageId page = kNoPage;
    int32_t num_children = 0;
    int32_t num_pins = 0;
    bool is_live = false;
    std::string salt;  // Of a root only.
  };

  static int32_t Index(PrefixNode node) { return static_cast<int32_t>(node); }
  const Node& At(PrefixNode node) const { return nodes_[Index(node)]; }
  Node& At(PrefixNode node) { return nodes_[Index(node)]; }
  std::span<TokenId> TokensOf(PrefixNode node) {
    return std::span(tokens_).subspan(size_t{1} * Index(node) * page_size_,
                                      page_size_);
  }
  std::span<const TokenId> TokensOf(PrefixNode node) const {
    return std::span(tokens_).subspan(size_t{1} * Index(node) * page_size_,
                                      page_size_);
  }
  uint64_t RootHash(std::string_view salt) const;
  PrefixNode FindHash(uint64_t hash) const;
  PrefixNode Add(uint64_t hash, PrefixNode parent);
  void ForgetIfUnused(PrefixNode node);

  const int32_t page_size_;
  const PrefixHash hash_;
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;         // [nodes_.size(), page_size]
  std::vector<PrefixNode> free_nodes_;  // A stack.
  absl::flat_hash_map<uint64_t, PrefixNode> by_hash_;
  std::vector<PrefixNode> nodes_of_;  // [num_pages]
  int32_t num_pages_ = 0;             // With a node.
  int32_t num_nodes_ = 0;
};

}  // namespace folio

#endif  // CACHE_PREFIX_INDEX_H_
