#include "cache/prefix_index.h"

#include <glog/logging.h>

#include <algorithm>

namespace folio {
namespace {

// The finaliser of MurmurHash3: every bit of the input changes about half of
// those of the output.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
  return x ^ (x >> 33);
}

}  // namespace

uint64_t HashTokens(uint64_t before, std::span<const TokenId> tokens) {
  uint64_t hash = before;
  for (const TokenId token : tokens) {
    hash = Mix(hash + 0x9e3779b97f4a7c15u + static_cast<uint32_t>(token));
  }
  return hash;
}

PrefixIndex::PrefixIndex(int32_t page_size, int32_t num_pages, PrefixHash hash)
    : page_size_(page_size), hash_(hash), nodes_of_(num_pages, kNoPrefixNode) {
  // One root more than pages, for one tenant.
  nodes_.reserve(num_pages + 1);
  free_nodes_.reserve(num_pages + 1);
  tokens_.reserve(size_t{1} * (num_pages + 1) * page_size);
  by_hash_.reserve(num_pages + 1);
}

uint64_t PrefixIndex::RootHash(std::string_view salt) const {
  uint64_t hash = 1;
  for (const char byte : salt) {
    const TokenId value = static_cast<uint8_t>(byte);
    hash = hash_(hash, std::span(&value, 1));
  }
  return hash;
}

PrefixNode PrefixIndex::FindHash(uint64_t hash) const {
  const auto entry = by_hash_.find(hash);
  return entry == by_hash_.end() ? kNoPrefixNode : entry->second;
}

PrefixNode PrefixIndex::FindRoot(std::string_view salt) const {
  const PrefixNode node = FindHash(RootHash(salt));
  const bool found = node != kNoPrefixNode &&
                     At(node).parent == kNoPrefixNode && At(node).salt == salt;
  return found ? node : kNoPrefixNode;
}

PrefixNode PrefixIndex::FindChild(PrefixNode parent,
                                  std::span<const TokenId> tokens) const {
  CHECK_EQ(static_cast<int64_t>(tokens.size()), page_size_);
  const PrefixNode node = FindHash(hash_(At(parent).hash, tokens));
  const bool found = node != kNoPrefixNode && At(node).parent == parent &&
                     std::ranges::equal(TokensOf(node), tokens);
  return found ? node : kNoPrefixNode;
}

PrefixNode PrefixIndex::MakeRoot(std::string_view salt) {
  const PrefixNode found = FindRoot(salt);
  if (found != kNoPrefixNode) return found;
  const PrefixNode node = Add(RootHash(salt), kNoPrefixNode);
  if (node != kNoPrefixNode) At(node).salt = salt;
  return node;
}

PrefixNode PrefixIndex::MakeChild(PrefixNode parent,
                                  std::span<const TokenId> tokens) {
  const PrefixNode found = FindChild(parent, tokens);
  if (found != kNoPrefixNode) return found;
  const PrefixNode node = Add(hash_(At(parent).hash, tokens), parent);
  if (node == kNoPrefixNode) return node;
  std::ranges::copy(tokens, TokensOf(node).begin());
  ++At(parent).num_children;
  return node;
}

PrefixNode PrefixIndex::Add(uint64_t hash, PrefixNode parent) {
  if (by_hash_.contains(hash)) return kNoPrefixNode;
  if (free_nodes_.empty()) {
    free_nodes_.push_back(PrefixNode{static_cast<int32_t>(nodes_.size())});
    nodes_.emplace_back();
    tokens_.resize(tokens_.size() + page_size_);
  }
  const PrefixNode node = free_nodes_.back();
  free_nodes_.pop_back();
  At(node).hash = hash;
  At(node).parent = parent;
  At(node).is_live = true;
  by_hash_.emplace(hash, node);
  ++num_nodes_;
  return node;
}

void PrefixIndex::SetPage(PrefixNode node, PageId page) {
  CHECK(page_of(node) == kNoPage);
  CHECK(!HasPage(page));
  At(node).page = page;
  nodes_of_[ToIndex(page)] = node;
  ++num_pages_;
}

void PrefixIndex::RemovePage(PageId page) {
  const PrefixNode node = node_of(page);
  CHECK(node != kNoPrefixNode) << "page " << ToIndex(page) << " has no node";
  At(node).page = kNoPage;
  nodes_of_[ToIndex(page)] = kNoPrefixNode;
  --num_pages_;
  ForgetIfUnused(node);
}

void PrefixIndex::Pin(PrefixNode node) { ++At(node).num_pins; }

void PrefixIndex::Unpin(PrefixNode node) {
  CHECK_GT(At(node).num_pins, 0);
  --At(node).num_pins;
  ForgetIfUnused(node);
}

void PrefixIndex::ForgetIfUnused(PrefixNode node) {
  while (node != kNoPrefixNode) {
    Node& entry = At(node);
    const bool is_used =
        entry.page != kNoPage || entry.num_children > 0 || entry.num_pins > 0;
    if (is_used) return;
    const PrefixNode parent = entry.parent;
    by_hash_.erase(entry.hash);
    entry.is_live = false;
    entry.salt.clear();
    free_nodes_.push_back(node);
    --num_nodes_;
    if (parent != kNoPrefixNode) --At(parent).num_children;
    node = parent;
  }
}

void PrefixIndex::CheckInvariants() const {
  std::vector<int32_t> children(nodes_.size(), 0);
  int32_t num_live = 0;
  int32_t num_with_page = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (!node.is_live) continue;
    ++num_live;
    CHECK(FindHash(node.hash) == PrefixNode{static_cast<int32_t>(i)});
    if (node.parent != kNoPrefixNode) {
      CHECK(At(node.parent).is_live);
      ++children[Index(node.parent)];
    }
    if (node.page == kNoPage) {
      CHECK(node.num_children > 0 || node.num_pins > 0);
    } else {
      ++num_with_page;
      CHECK(node_of(node.page) == PrefixNode{static_cast<int32_t>(i)});
    }
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].is_live) CHECK_EQ(children[i], nodes_[i].num_children);
  }
  CHECK_EQ(num_live, num_nodes_);
  CHECK_EQ(num_live, static_cast<int32_t>(by_hash_.size()));
  CHECK_EQ(num_with_page, num_pages_);
}

}  // namespace folio
