// Splits the rows of a batch between workers.

#ifndef RUNTIME_KERNELS_PARALLEL_ROWS_H_
#define RUNTIME_KERNELS_PARALLEL_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "runtime/base/executor.h"

namespace folio {

// Rows [first, end()) of a batch.
struct Rows {
  int32_t end() const { return first + count; }

  int32_t first;
  int32_t count;
};

// Calls body(some rows, worker) for pieces that cover `rows` once. A few rows
// are done by the caller alone: sharing would cost more.
template <typename Body>
void ParallelRows(Executor& executor, Rows rows, const Body& body) {
  constexpr int32_t kRowsPerTask = 8;
  if (rows.count == 0) return;
  const bool is_shared = executor.num_workers() > 1;
  if (is_shared && rows.count <= kRowsPerTask) return body(rows, 0);
  const int32_t most = is_shared ? kRowsPerTask : rows.count;
  const int num_tasks = (rows.count + most - 1) / most;
  executor.ParallelFor(num_tasks, [&](int task, int worker) {
    const int32_t first = rows.first + task * most;
    body(Rows{first, std::min(most, rows.end() - first)}, worker);
  });
}

}  // namespace folio

#endif  // RUNTIME_KERNELS_PARALLEL_ROWS_H_
