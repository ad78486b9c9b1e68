// The live table of `folio memory --follow`, as lines of text.

#ifndef RUNTIME_CLI_LIVE_TABLE_H_
#define RUNTIME_CLI_LIVE_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "folio/v1/introspection.pb.h"

namespace folio {

struct TerminalSize {
  int rows = 24;
  int columns = 80;

  bool operator==(const TerminalSize&) const = default;
};

// What has happened since the watching began, in batches that were not drawn,
// too.
struct LiveTotals {
  int64_t preempted = 0;
  int64_t prefix_query_tokens = 0;
  int64_t prefix_hit_tokens = 0;
  int64_t pages_evicted = 0;
  int64_t pages_copied = 0;
  int64_t dropped_reports = 0;  // What those said is missing here.

  void Add(const v1::BatchReport& report);
};

struct LiveState {
  std::string server;      // Its address.
  v1::BatchReport report;  // The last one.
  LiveTotals totals;
  absl::Duration age;  // Since the report came.
};

// At most size.rows lines of fewer than size.columns characters each, without
// control characters: how full the pool is, what the last batch was made of,
// and the sequences with the most pages, as many as there is room for.
// O(S log S) for S sequences.
std::vector<std::string> LiveTable(const LiveState& state, TerminalSize size);

}  // namespace folio

#endif  // RUNTIME_CLI_LIVE_TABLE_H_
