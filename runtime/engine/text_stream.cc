#include "runtime/engine/text_stream.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace folio {

TextStream::TextStream(const Tokenizer* tokenizer,
                       std::shared_ptr<const StopStrings> stop_strings,
                       bool include_stop)
    : detokenizer_(tokenizer, TextStart::kContinuation),
      include_stop_(include_stop) {
  // So that usual tokens take no memory while they come.
  ready_.reserve(Detokenizer::kUsualBytes);
  if (stop_strings == nullptr) return;
  held_ = std::make_unique<Held>(std::move(stop_strings));
}

bool TextStream::Append(TokenId token, bool may_stop) {
  detokenizer_.Append(token, ready_);
  return held_ != nullptr && Hold(may_stop);
}

// Moves what is ready to what is held back, and looks for a stop string in it.
bool TextStream::Hold(bool may_stop) {
  Held& held = *held_;
  const size_t end = held.text_start + held.text.size() + ready_.size();
  // Tokens before this one have no other characters to wait for than it has.
  if (!ready_.empty()) {
    std::ranges::replace(held.ends, kUnknown, end);
  }
  held.ends.push_back(detokenizer_.has_pending() ? kUnknown : end);
  const std::optional<StopMatcher::Match> match =
      held.matcher.Append(ready_, may_stop);
  if (match.has_value()) {
    const size_t match_end = held.text_start + held.text.size() + match->end;
    held.stop = match->stop;
    held.cut = include_stop_ ? match_end : match_end - match->stop->size();
  }
  held.text += ready_;
  ready_.clear();
  return match.has_value();
}

void TextStream::Held::PassUntil(size_t position, TokenEvent& event) {
  if (position > text_start) {
    const size_t count = position - text_start;
    event.text.append(text, 0, count);
    text.erase(0, count);
    text_start = position;
  }
  size_t num_tokens = 0;
  while (num_tokens < tokens.tokens.size() && ends[num_tokens] <= position) {
    ++num_tokens;
  }
  event.sampled.Append(tokens, num_tokens);
  tokens.RemoveFirst(num_tokens);
  ends.erase(ends.begin(), ends.begin() + num_tokens);
}

void TextStream::Complete(TokenEvent& event) {
  // Events keep their memory, and differ in the text that they have had.
  event.text.reserve(Detokenizer::kUsualBytes);
  const bool finished = event.finish_reason != FinishReason::kNone;
  if (held_ == nullptr) {
    event.text += ready_;
    ready_.clear();
    if (finished) detokenizer_.Finish(event.text);
    return;
  }
  Held& held = *held_;
  held.tokens.Append(event.sampled, event.sampled.tokens.size());
  event.sampled.Clear();
  if (held.cut.has_value()) {
    held.PassUntil(*held.cut, event);
    if (finished) event.stop = *held.stop;
    return;
  }
  if (finished) {
    detokenizer_.Finish(held.text);
    std::ranges::fill(held.ends, 0);
  }
  const size_t end = held.text_start + held.text.size();
  held.PassUntil(finished ? end : end - held.matcher.num_withheld(), event);
}

}  // namespace folio
