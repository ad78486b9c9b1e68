// What a load test asks for: who arrives when, and what each wants.

#ifndef BENCH_LOAD_LOAD_H_
#define BENCH_LOAD_LOAD_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/types.h"
#include "scheduler/request.h"

namespace folio {

// Of a prompt, a prefix or an output; more is a slip.
inline constexpr int32_t kMaxTokens = 1 << 24;

struct LoadRequest {
  absl::Duration arrival;     // After the start; without effect on later turns.
  int32_t prompt_tokens = 1;  // >= 1
  int32_t output_tokens = 1;  // >= 1; whatever is sampled, it goes on so long.
  uint64_t token_seed = 0;    // Of the prompt's tokens.

  // The prompt instead of tokens, when it is not empty: UTF-8.
  std::string prompt_text;
  // Tokens in front of the prompt's own: all requests with the same seed have
  // the same ones there. None with a text.
  uint64_t prefix_seed = 0;
  int32_t prefix_tokens = 0;

  std::string tenant;    // Empty: not said.
  int32_t priority = 0;  // A smaller number goes first.
  int32_t n = 1;         // Samples.

  // Both after the scheduled arrival: by when it must have ended, and when its
  // client gives it up.
  std::optional<absl::Duration> deadline;
  std::optional<absl::Duration> cancel_after;
  // The client waits so long before it reads each next message. Zero: it reads
  // at once.
  absl::Duration read_delay;

  // A later turn of a conversation: the index in the load, smaller than its
  // own, of the turn before, which no other request goes on from. This one is
  // due `think_time` after that one's end.
  // Its prompt is that one's prompt and output (of the first sample), followed
  // by what would be its own prompt otherwise; both are tokens, or both texts.
  std::optional<int32_t> previous;
  absl::Duration think_time;  // Zero where there is no turn before.

  friend bool operator==(const LoadRequest&, const LoadRequest&) = default;
};

// Tokens drawn evenly from the vocabulary; a function of the arguments alone.
std::vector<TokenId> RandomTokens(uint64_t seed, int32_t count,
                                  int32_t vocab_size);

// The shared prefix and then the request's own tokens; of a later turn, what
// follows the history. REQUIRES: prompt_text is empty.
std::vector<TokenId> PromptTokens(const LoadRequest& load, int32_t vocab_size);

// What an engine is asked for: greedy, and going on after an end of sequence.
// REQUIRES: CheckPlain.
Request ToRequest(const LoadRequest& load, int32_t vocab_size);

// Whether each of the requests can be told in full before the load begins, as
// one with tokens, an output length, a tenant and a priority. INVALID_ARGUMENT
// names the first other one, and what it has.
absl::Status CheckPlain(std::span<const LoadRequest> load);

}  // namespace folio

#endif  // BENCH_LOAD_LOAD_H_
