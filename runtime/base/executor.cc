#include "runtime/base/executor.h"

namespace folio {

void SerialExecutor::ParallelFor(
    int num_tasks, absl::FunctionRef<void(int task, int worker)> body) {
  for (int task = 0; task < num_tasks; ++task) body(task, worker_);
}

}  // namespace folio
