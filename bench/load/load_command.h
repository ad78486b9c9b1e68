// What `folio-load` does.

#ifndef BENCH_LOAD_LOAD_COMMAND_H_
#define BENCH_LOAD_LOAD_COMMAND_H_

#include "absl/status/status.h"
#include "bench/load/load_flags.h"

namespace folio {

// Opens the target, makes the load, runs it (once, or for each value of a
// sweep), prints tables, and writes the files that were asked for. What was
// measured before an error is printed and written all the same.
//
// UNAVAILABLE when the target does not answer, or not any more; CANCELLED after
// SIGINT or SIGTERM; FAILED_PRECONDITION when no request was served.
absl::Status RunLoadCommand(const LoadFlags& flags);

}  // namespace folio

#endif  // BENCH_LOAD_LOAD_COMMAND_H_
