#include "bench/load/synthetic.h"

#include <glog/logging.h>

#include "absl/strings/str_cat.h"
#include "bench/load/random.h"

namespace folio {
namespace {

// What is drawn from which stream of the seed.
enum Stream : uint64_t {
  kPrompt = 0,
  kOutput = 1,
  kArrival = kArrivalStream,
  kGroup,
  kTenant,
  kThink,
  kIsCancelled,
  kCancelAfter,
  kHasDeadline,
  kIsSlow,
};

// The seeds of tokens are the load's and 32 bits: requests have the lower half
// of them, groups the upper one.
constexpr uint64_t kFirstGroup = uint64_t{1} << 31;

class Maker {
 public:
  explicit Maker(const SyntheticLoad& load)
      : load_(load),
        arrivals_(DrawArrivals(
            load.arrivals, (int64_t{load.count} + load.turns - 1) / load.turns,
            load.seed)) {}

  LoadRequest Make(int32_t index) const {
    const int32_t conversation = index / load_.turns;
    LoadRequest request;
    request.prompt_tokens = PromptLength(index);
    request.output_tokens =
        DrawLength(load_.output, load_.seed, kOutput, index);
    request.token_seed = (load_.seed << 32) + static_cast<uint64_t>(index);
    request.n = load_.n;
    if (load_.tenants > 0) {
      request.tenant = absl::StrCat(
          "tenant-",
          DrawBelow(load_.tenants, load_.seed, kTenant, conversation));
    }
    if (index % load_.turns == 0) {
      BeginConversation(conversation, request);
    } else {
      request.previous = index - 1;
      request.think_time = ThinkTime(index);
    }
    AddTroubles(index, request);
    return request;
  }

 private:
  int32_t PromptLength(int32_t index) const {
    const int32_t every = load_.long_prompt_every;
    if (every > 0 && index % every == every - 1) {
      return load_.long_prompt_tokens;
    }
    return DrawLength(load_.prompt, load_.seed, kPrompt, index);
  }

  void BeginConversation(int32_t conversation, LoadRequest& request) const {
    request.arrival = arrivals_[conversation];
    if (load_.shared_prefix_tokens == 0) return;
    request.prefix_tokens = load_.shared_prefix_tokens;
    request.prefix_seed =
        (load_.seed << 32) + kFirstGroup +
        static_cast<uint64_t>(
            DrawBelow(load_.prefix_groups, load_.seed, kGroup, conversation));
  }

  absl::Duration ThinkTime(int32_t index) const {
    if (!load_.think_ms.has_value()) return absl::ZeroDuration();
    return absl::Milliseconds(
        DrawLength(*load_.think_ms, load_.seed, kThink, index));
  }

  void AddTroubles(int32_t index, LoadRequest& request) const {
    if (IsOneOf(load_.cancel_share, kIsCancelled, index)) {
      request.cancel_after =
          load_.cancel_within * UniformDouble(load_.seed, kCancelAfter, index);
    }
    if (IsOneOf(load_.deadline_share, kHasDeadline, index)) {
      request.deadline = load_.deadline;
    }
    if (IsOneOf(load_.slow_reader_share, kIsSlow, index)) {
      request.read_delay = load_.read_delay;
    }
  }

  bool IsOneOf(double share, Stream stream, int32_t index) const {
    return UniformDouble(load_.seed, stream, index) < share;
  }

  const SyntheticLoad& load_;
  const std::vector<absl::Duration> arrivals_;  // Of conversations.
};

std::string Percent(double share) { return absl::StrCat(100 * share, "%"); }

// The end of Describe's line: what few loads have.
std::string DescribeTroubles(const SyntheticLoad& load) {
  std::string text;
  if (load.cancel_share > 0) {
    absl::StrAppend(&text, "; ", Percent(load.cancel_share),
                    " cancelled within ",
                    absl::FormatDuration(load.cancel_within));
  }
  if (load.deadline_share > 0) {
    absl::StrAppend(&text, "; ", Percent(load.deadline_share),
                    " with a deadline of ",
                    absl::FormatDuration(load.deadline));
  }
  if (load.slow_reader_share > 0) {
    absl::StrAppend(&text, "; ", Percent(load.slow_reader_share),
                    " read a message every ",
                    absl::FormatDuration(load.read_delay));
  }
  return text;
}

}  // namespace

std::vector<LoadRequest> MakeLoad(const SyntheticLoad& load) {
  CHECK_GE(load.turns, 1);
  CHECK_GE(load.prefix_groups, 1);
  const Maker maker(load);
  std::vector<LoadRequest> requests;
  requests.reserve(load.count);
  for (int32_t i = 0; i < load.count; ++i) requests.push_back(maker.Make(i));
  return requests;
}

std::string Describe(const SyntheticLoad& load, int32_t concurrency) {
  std::string text = absl::StrCat(load.count, " requests");
  if (load.turns > 1) {
    absl::StrAppend(&text, " in conversations of ", load.turns,
                    " turns, the first ones");
  }
  if (concurrency > 0) {
    absl::StrAppend(&text, " ", concurrency, " at a time");
  } else {
    absl::StrAppend(&text, " ", Describe(load.arrivals));
  }
  absl::StrAppend(&text, "; prompt tokens: ", Describe(load.prompt));
  if (load.long_prompt_every > 0) {
    absl::StrAppend(&text, " (one in ", load.long_prompt_every, ": ",
                    load.long_prompt_tokens, ")");
  }
  absl::StrAppend(&text, "; output tokens: ", Describe(load.output));
  if (load.shared_prefix_tokens > 0) {
    absl::StrAppend(&text, "; ", load.shared_prefix_tokens,
                    " tokens in front shared in ", load.prefix_groups,
                    load.prefix_groups == 1 ? " group" : " groups");
  }
  if (load.turns > 1 && load.think_ms.has_value()) {
    absl::StrAppend(&text, "; ms between turns: ", Describe(*load.think_ms));
  }
  if (load.n > 1) absl::StrAppend(&text, "; ", load.n, " samples each");
  if (load.tenants > 0) {
    absl::StrAppend(&text, "; ", load.tenants,
                    load.tenants == 1 ? " tenant" : " tenants");
  }
  return absl::StrCat(text, DescribeTroubles(load), "; seed ", load.seed);
}

}  // namespace folio
