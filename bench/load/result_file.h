// Files that results are written to.

#ifndef BENCH_LOAD_RESULT_FILE_H_
#define BENCH_LOAD_RESULT_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace folio {

// Whether WriteResult could write there now: a run is long, and nobody wants to
// lose what it measured. Leaves nothing behind. UNAVAILABLE names the path and
// the reason.
absl::Status CheckWritable(const std::string& path);

// Writes the file, or leaves what was there before as it was (unless that is a
// device or a pipe).
absl::Status WriteResult(const std::string& path, std::string_view text);

}  // namespace folio

#endif  // BENCH_LOAD_RESULT_FILE_H_
