#include "runtime/tokenizer/pre_tokenizer.h"

#include <optional>

#include "runtime/base/status_macros.h"

namespace folio {
namespace {

struct Stretch {
  size_t begin;
  size_t end;
  bool is_match;
};

// Turns matches and what is between them, in order, into pieces.
class Splitter {
 public:
  Splitter(SplitBehavior behavior, std::string_view text,
           PreTokenizer::Visitor visit)
      : behavior_(behavior), text_(text), visit_(visit) {}

  absl::Status Add(const Stretch& next) {
    if (behavior_ == SplitBehavior::kIsolated) return Visit(next);
    if (behavior_ == SplitBehavior::kRemoved) {
      return next.is_match ? absl::OkStatus() : Visit(next);
    }
    if (last_.has_value() && Join(next)) {
      last_->end = next.end;
      last_->is_match = next.is_match;
      return absl::OkStatus();
    }
    FOLIO_RETURN_IF_ERROR(Finish());
    last_ = next;
    return absl::OkStatus();
  }

  absl::Status Finish() {
    return last_.has_value() ? Visit(*last_) : absl::OkStatus();
  }

 private:
  bool Join(const Stretch& next) const {
    switch (behavior_) {
      case SplitBehavior::kMergedWithPrevious:
        return next.is_match && !last_->is_match;
      case SplitBehavior::kMergedWithNext:
        return !next.is_match && last_->is_match;
      default:
        return next.is_match == last_->is_match;
    }
  }

  absl::Status Visit(const Stretch& piece) {
    if (piece.begin == piece.end) return absl::OkStatus();
    return visit_(text_.substr(piece.begin, piece.end - piece.begin));
  }

  const SplitBehavior behavior_;
  const std::string_view text_;
  const PreTokenizer::Visitor visit_;
  std::optional<Stretch> last_;  // What the next stretch may be joined to.
};

absl::Status ForEachPart(const Split& split, std::string_view text,
                         PreTokenizer::Visitor visit) {
  Splitter splitter(split.behavior, text, visit);
  size_t done = 0;
  const auto add_gap = [&](size_t end) {
    if (done == end) return absl::OkStatus();
    return splitter.Add({done, end, /*is_match=*/split.invert});
  };
  const auto add_match = [&](size_t begin, size_t end) {
    FOLIO_RETURN_IF_ERROR(add_gap(begin));
    done = end;
    return splitter.Add({begin, end, /*is_match=*/!split.invert});
  };
  FOLIO_RETURN_IF_ERROR(split.pattern.ForEachMatch(text, add_match));
  FOLIO_RETURN_IF_ERROR(add_gap(text.size()));
  return splitter.Finish();
}

}  // namespace

absl::Status PreTokenizer::ForEachPiece(std::string_view text, bool is_at_start,
                                        Visitor visit) const {
  return RunFrom(0, text, is_at_start, visit);
}

absl::Status PreTokenizer::RunFrom(size_t step, std::string_view text,
                                   bool is_at_start, Visitor visit) const {
  if (text.empty()) return absl::OkStatus();
  if (step == steps_.size()) return visit(text);
  if (const auto* split = std::get_if<Split>(&steps_[step])) {
    return ForEachPart(*split, text, [&](std::string_view piece) {
      const bool is_first = piece.data() == text.data();
      return RunFrom(step + 1, piece, is_at_start && is_first, visit);
    });
  }
  if (const auto* normalizer = std::get_if<Normalizer>(&steps_[step])) {
    FOLIO_ASSIGN_OR_RETURN(const std::string rewritten,
                           normalizer->Apply(text));
    return RunFrom(step + 1, rewritten, is_at_start, visit);
  }
  const auto& prefix = std::get<PrefixPieces>(steps_[step]);
  if (text.starts_with(prefix.prefix) ||
      (prefix.only_at_start && !is_at_start)) {
    return RunFrom(step + 1, text, is_at_start, visit);
  }
  return RunFrom(step + 1, prefix.prefix + std::string(text), is_at_start,
                 visit);
}

}  // namespace folio
