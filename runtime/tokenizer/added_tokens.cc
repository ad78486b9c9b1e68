#include "runtime/tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/code_points.h"

namespace folio {
namespace {

uint64_t Edge(int32_t node, char byte) {
  return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte);
}

bool IsSingleWord(std::string_view text, size_t begin, size_t end) {
  const bool joined_before =
      begin > 0 && IsWordCharacter(BackCodePoint(text.substr(0, begin)).value);
  const bool joined_after =
      end < text.size() &&
      IsWordCharacter(FrontCodePoint(text.substr(end)).value);
  return !joined_before && !joined_after;
}

// Where the white space that ends at `end` begins, not before `least`.
size_t BeginOfWhiteSpace(std::string_view text, size_t least, size_t end) {
  while (end > least) {
    const CodePoint back = BackCodePoint(text.substr(0, end));
    if (!IsWhiteSpace(back.value)) break;
    end -= back.length;
  }
  return end;
}

size_t EndOfWhiteSpace(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const CodePoint front = FrontCodePoint(text.substr(begin));
    if (!IsWhiteSpace(front.value)) break;
    begin += front.length;
  }
  return begin;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& content = tokens_[i].content;
    if (content.empty()) continue;
    may_begin_[static_cast<uint8_t>(content.front())] = true;
    Node node = 0;
    for (const char byte : content) {
      const auto [child, is_new] = children_.try_emplace(
          Edge(node, byte), static_cast<Node>(token_at_.size()));
      if (is_new) token_at_.push_back(-1);
      node = child->second;
    }
    if (token_at_[node] < 0) token_at_[node] = static_cast<int32_t>(i);
  }
}

const AddedToken* AddedTokens::LongestAt(std::string_view text,
                                         bool parse_special) const {
  const AddedToken* longest = nullptr;
  Node node = 0;
  for (const char byte : text) {
    const auto child = children_.find(Edge(node, byte));
    if (child == children_.end()) break;
    node = child->second;
    if (token_at_[node] < 0) continue;
    const AddedToken& token = tokens_[token_at_[node]];
    if (parse_special || !token.special) longest = &token;
  }
  return longest;
}

absl::Status AddedTokens::ForEachSection(std::string_view text,
                                         bool parse_special,
                                         Visitor visit) const {
  size_t done = 0;  // What lies before has been visited.
  for (size_t at = 0; at < text.size();) {
    const AddedToken* const token =
        may_begin_[static_cast<uint8_t>(text[at])]
            ? LongestAt(text.substr(at), parse_special)
            : nullptr;
    if (token == nullptr) {
      ++at;
      continue;
    }
    const size_t match_end = at + token->content.size();
    if (token->single_word && !IsSingleWord(text, at, match_end)) {
      at = match_end;
      continue;
    }
    const size_t begin = token->lstrip ? BeginOfWhiteSpace(text, done, at) : at;
    const size_t end =
        token->rstrip ? EndOfWhiteSpace(text, match_end) : match_end;
    if (done < begin) {
      FOLIO_RETURN_IF_ERROR(visit({.text = text.substr(done, begin - done)}));
    }
    FOLIO_RETURN_IF_ERROR(visit({.token = token->id}));
    done = at = end;
  }
  if (done < text.size()) {
    FOLIO_RETURN_IF_ERROR(visit({.text = text.substr(done)}));
  }
  return absl::OkStatus();
}

}  // namespace folio
