#include "runtime/server/response_queue.h"

#include <algorithm>
#include <utility>

#include "runtime/server/finish_status.h"
#include "runtime/server/response_conversion.h"
#include "runtime/tokenizer/detokenizer.h"

namespace folio {
namespace {

// When a response has so many tokens and alternatives, the next events start
// another one. Each takes 20 bytes at most, while clients refuse messages of
// more than 4 MiB unless they are told otherwise.
constexpr int64_t kMaxEntries = 32768;

int64_t NumEntries(const TokenEvent& event) {
  return static_cast<int64_t>(
      event.sampled.tokens.size() + event.sampled.top.size() +
      event.prompt.tokens.size() + event.prompt.top.size());
}

// An event may have been left with nothing, when its tokens wait for what may
// be a stop string.
bool SaysNothing(const TokenEvent& event) {
  return !event.terminal && event.finish_reason == FinishReason::kNone &&
         event.text.empty() && event.sampled.tokens.empty() &&
         event.prompt.tokens.empty();
}

}  // namespace

ResponseQueue::ResponseQueue(std::string name, const Request& request)
    : name_(std::move(name)), seed_(*request.sampling.seed) {}

void ResponseQueue::AddEcho(const Tokenizer& tokenizer,
                            std::span<const TokenId> prompt) {
  Detokenizer detokenizer(&tokenizer, TextStart::kStart);
  while (!prompt.empty()) {
    const std::span<const TokenId> part =
        prompt.first(std::min<size_t>(prompt.size(), kMaxEntries));
    prompt = prompt.subspan(part.size());
    Pending& pending = AddPending(/*sample=*/0);
    pending.num_entries = static_cast<int64_t>(part.size());
    pending.response.mutable_prompt_token_ids()->Add(part.begin(), part.end());
    std::string& text = *pending.response.mutable_prompt_text();
    for (const TokenId token : part) detokenizer.Append(token, text);
    if (prompt.empty()) detokenizer.Finish(text);
  }
}

void ResponseQueue::Add(std::span<const TokenEvent> events) {
  for (const TokenEvent& event : events) {
    if (SaysNothing(event)) continue;
    AppendToProto(event, ResponseFor(event));
    if (event.terminal) end_ = StatusOfFinish(event.finish_reason);
  }
}

ResponseQueue::Pending& ResponseQueue::AddPending(int32_t sample) {
  Pending& pending = pending_.emplace_back();
  pending.response.set_request_id(name_);
  pending.response.set_sample_index(sample);
  if (!std::exchange(seed_is_told_, true)) pending.response.set_seed(seed_);
  growing_[sample] = &pending;
  return pending;
}

v1::GenerateResponse& ResponseQueue::ResponseFor(const TokenEvent& event) {
  // The terminal event is of all samples, and in the last message.
  if (event.terminal && !pending_.empty()) return pending_.back().response;
  const int64_t entries = NumEntries(event);
  const auto found = growing_.find(event.sample_index);
  const bool has_room = found != growing_.end() &&
                        (found->second->num_entries == 0 ||
                         found->second->num_entries + entries <= kMaxEntries);
  Pending& pending = has_room ? *found->second : AddPending(event.sample_index);
  pending.num_entries += entries;
  return pending.response;
}

v1::GenerateResponse ResponseQueue::Pop() {
  Pending& next = pending_.front();
  v1::GenerateResponse response = std::move(next.response);
  const auto growing = growing_.find(response.sample_index());
  if (growing != growing_.end() && growing->second == &next) {
    growing_.erase(growing);
  }
  pending_.pop_front();
  return response;
}

}  // namespace folio
