// Loads as files.

#ifndef BENCH_LOAD_TRACE_H_
#define BENCH_LOAD_TRACE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/load.h"

namespace folio {

// Reads a trace, one JSON object a line for each LoadRequest:
//
//   {"arrival_s": 0.19, "prompt_tokens": 100, "output_tokens": 206,
//    "token_seed": 2001}                                     (on one line)
//
// Each line needs these four, but for those that have no effect: a text as
// "prompt" is instead of prompt_tokens and token_seed, and "previous" (the
// number of a line with an object, further up, from 0) instead of arrival_s. It
// may have prefix_tokens, prefix_seed, tenant, priority, n, deadline_s,
// cancel_s, read_delay_s and think_s. Names are those of LoadRequest's fields,
// those that end in _s are numbers of seconds. Lines may be in any order of
// arrival, blank ones are skipped.
//
// NOT_FOUND for a file that can't be opened; INVALID_ARGUMENT names the file,
// the line and the field, what was found and what is allowed.
absl::StatusOr<std::vector<LoadRequest>> ReadTrace(const std::string& path);

// The same of a text; `name` stands for the file in messages.
absl::StatusOr<std::vector<LoadRequest>> ParseTrace(std::string_view text,
                                                    std::string_view name);

// The text that ParseTrace reads as this very load. REQUIRES: `load` is as
// LoadRequest demands, texts are UTF-8, and no time is above 1e6 seconds.
std::string WriteTrace(std::span<const LoadRequest> load);

}  // namespace folio

#endif  // BENCH_LOAD_TRACE_H_
