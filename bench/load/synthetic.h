// Loads that are made up, where there is no trace.

#ifndef BENCH_LOAD_SYNTHETIC_H_
#define BENCH_LOAD_SYNTHETIC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "bench/load/arrivals.h"
#include "bench/load/lengths.h"
#include "bench/load/load.h"

namespace folio {

// By itself: chat, all at once.
struct SyntheticLoad {
  int32_t count = 1;  // Requests: each turn of a conversation is one.
  Arrivals arrivals = {};
  Length prompt = LogNormalLength{.median = 200, .sigma = 0.9, .most = 2000};
  Length output = LogNormalLength{.median = 150, .sigma = 0.8, .most = 1000};
  // Every so many requests, one has long_prompt_tokens. 0: none.
  int32_t long_prompt_every = 0;
  int32_t long_prompt_tokens = 3000;

  // So many tokens in front of each prompt are those of its group.
  int32_t shared_prefix_tokens = 0;
  int32_t prefix_groups = 1;  // >= 1; each request's is drawn evenly.

  // Turns in a conversation, >= 1; the last one has fewer if `count` ends it.
  // The first turn arrives by the process, the others each after the think time
  // (none: at once). All have the tenant of the first, and its prefix as a part
  // of the history.
  int32_t turns = 1;
  std::optional<Length> think_ms = std::nullopt;

  int32_t n = 1;
  // Their names are tenant-0, tenant-1, ...; each request's is drawn evenly. 0:
  // none is named.
  int32_t tenants = 0;

  // Shares, 0 to 1, of requests: those that are cancelled, each at a time drawn
  // evenly from 0 to cancel_within; those with a deadline; those whose reader
  // is slow. Who is one of these does not depend on the others.
  double cancel_share = 0;
  absl::Duration cancel_within = absl::Seconds(10);
  double deadline_share = 0;
  absl::Duration deadline = absl::Seconds(10);
  double slow_reader_share = 0;
  absl::Duration read_delay = absl::Milliseconds(100);

  uint64_t seed = 1;
};

// A function of the argument alone. The turns of a conversation stand behind
// one another; the first ones are in the order of arrival. No two requests have
// the same token_seed.
std::vector<LoadRequest> MakeLoad(const SyntheticLoad& load);

// In one line, for people. `concurrency` is that of a closed loop; 0: the
// arrivals count.
std::string Describe(const SyntheticLoad& load, int32_t concurrency = 0);

}  // namespace folio

#endif  // BENCH_LOAD_SYNTHETIC_H_
