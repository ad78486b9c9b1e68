#include "scheduler/token_mask.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace folio {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

class AllowedTokensMask final : public TokenMask {
 public:
  using Tokens = std::shared_ptr<const std::vector<TokenId>>;

  explicit AllowedTokensMask(Tokens tokens) : tokens_(std::move(tokens)) {}

  void Apply(std::span<float> logits) const override {
    size_t next = 0;
    for (const TokenId token : *tokens_) {
      std::fill(logits.begin() + next, logits.begin() + token, kNever);
      next = static_cast<size_t>(token) + 1;
    }
    std::fill(logits.begin() + next, logits.end(), kNever);
  }

  void Advance(TokenId /*token*/) override {}

  std::unique_ptr<TokenMask> Clone() const override {
    return std::make_unique<AllowedTokensMask>(tokens_);
  }

 private:
  const Tokens tokens_;
};

class BadWordsMask final : public TokenMask {
 public:
  using Words = std::shared_ptr<const std::vector<std::vector<TokenId>>>;

  explicit BadWordsMask(Words words) : words_(std::move(words)) {
    for (const std::vector<TokenId>& word : *words_) {
      CHECK(!word.empty());
      longest_ = std::max(longest_, word.size());
    }
    last_.reserve(longest_);
  }

  BadWordsMask(const BadWordsMask& other)
      : words_(other.words_), longest_(other.longest_) {
    last_.reserve(longest_);
    last_ = other.last_;
  }

  void Apply(std::span<float> logits) const override {
    for (const std::vector<TokenId>& word : *words_) {
      const size_t before = word.size() - 1;
      if (before <= last_.size() &&
          std::equal(last_.end() - before, last_.end(), word.begin())) {
        logits[word.back()] = kNever;
      }
    }
  }

  void Advance(TokenId token) override {
    if (last_.size() == longest_) last_.erase(last_.begin());
    last_.push_back(token);
  }

  std::unique_ptr<TokenMask> Clone() const override {
    return std::make_unique<BadWordsMask>(*this);
  }

 private:
  const Words words_;
  size_t longest_ = 1;
  std::vector<TokenId> last_;  // Generated tokens, at most `longest_` of them.
};

}  // namespace

std::unique_ptr<TokenMask> MakeAllowedTokensMask(std::vector<TokenId> tokens) {
  return std::make_unique<AllowedTokensMask>(
      std::make_shared<const std::vector<TokenId>>(std::move(tokens)));
}

std::unique_ptr<TokenMask> MakeBadWordsMask(
    std::vector<std::vector<TokenId>> words) {
  return std::make_unique<BadWordsMask>(
      std::make_shared<const std::vector<std::vector<TokenId>>>(
          std::move(words)));
}

}  // namespace folio
