// Splits the rows of a batch between workers.

#ifndef RUNTIME_KERNELS_PARALLEL_ROWS_H_
#define RUNTIME_KERNELS_PARALLEL_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "runtime/base/executor.h"

namespace folio {

// Calls body(first_row, num_rows, worker) for pieces that cover [0, num_rows)
// once. A few rows are done by the caller alone: sharing would cost more.
template <typename Body>
void ParallelRows(Executor& executor, int32_t num_rows, const Body& body) {
  constexpr int32_t kRowsPerTask = 8;
  if (num_rows <= kRowsPerTask || executor.num_workers() == 1) {
    if (num_rows > 0) body(0, num_rows, 0);
    return;
  }
  const int32_t num_tasks = (num_rows + kRowsPerTask - 1) / kRowsPerTask;
  executor.ParallelFor(num_tasks, [&](int task, int worker) {
    const int32_t first = task * kRowsPerTask;
    body(first, std::min(kRowsPerTask, num_rows - first), worker);
  });
}

}  // namespace folio

#endif  // RUNTIME_KERNELS_PARALLEL_ROWS_H_
