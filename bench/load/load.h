// What a load test asks for: who arrives when, and how much each wants.

#ifndef BENCH_LOAD_LOAD_H_
#define BENCH_LOAD_LOAD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/types.h"
#include "scheduler/request.h"

namespace folio {

struct LoadRequest {
  absl::Duration arrival;     // After the start.
  int32_t prompt_tokens = 1;  // >= 1
  int32_t output_tokens = 1;  // >= 1; whatever is sampled, it goes on so long.
  uint64_t token_seed = 0;    // Of the prompt's tokens.
};

// Reads a trace, one JSON object a line with the four fields of a LoadRequest,
// the first as a number of seconds:
//
//   {"arrival_s": 0.19, "prompt_tokens": 100, "output_tokens": 206,
//    "token_seed": 2001}                                     (on one line)
//
// Blank lines are skipped. NOT_FOUND for a file that can't be opened;
// INVALID_ARGUMENT names the file, the line and the field, what was found and
// what is allowed.
absl::StatusOr<std::vector<LoadRequest>> ReadTrace(const std::string& path);

// The same of a text; `name` stands for the file in messages.
absl::StatusOr<std::vector<LoadRequest>> ParseTrace(std::string_view text,
                                                    std::string_view name);

// A length whose logarithm is normally distributed.
struct LogNormalLength {
  double median = 1;
  double sigma = 0;  // Of the logarithm.
  int32_t most = 1;  // Longer ones are cut to this, shorter than 1 to 1.
};

// Chat as it is made here when there is no trace. Gaps between arrivals are
// exponential (a Poisson process).
struct ChatLoad {
  int32_t count = 1;
  double arrivals_per_second = 0;  // 0: all at once.
  LogNormalLength prompt = {.median = 200, .sigma = 0.9, .most = 2000};
  LogNormalLength output = {.median = 150, .sigma = 0.8, .most = 1000};
  // Every so many requests, one has long_prompt_tokens. 0: none.
  int32_t long_prompt_every = 0;
  int32_t long_prompt_tokens = 3000;
  uint64_t seed = 1;
};

// In the order of arrival; a function of the arguments alone.
std::vector<LoadRequest> MakeChat(const ChatLoad& load);

// Tokens drawn evenly from the vocabulary; a function of the arguments alone.
std::vector<TokenId> RandomTokens(uint64_t seed, int32_t count,
                                  int32_t vocab_size);

// What an engine is asked for: greedy, and going on after an end of sequence.
Request ToRequest(const LoadRequest& load, int32_t vocab_size);

}  // namespace folio

#endif  // BENCH_LOAD_LOAD_H_
