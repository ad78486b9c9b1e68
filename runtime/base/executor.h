// Who does parallel work. One implementation runs everything on the caller's
// thread, the other on a oneTBB pool; results never depend on which.

#ifndef RUNTIME_BASE_EXECUTOR_H_
#define RUNTIME_BASE_EXECUTOR_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"

namespace folio {

class Executor {
 public:
  virtual ~Executor() = default;

  // How many tasks can run at the same time; at least 1 and fixed for life.
  virtual int num_workers() const = 0;

  // Calls body(task, worker) once for each task in [0, num_tasks), perhaps at
  // the same time, and returns when all have returned. `worker` is in
  // [0, num_workers()) and no two calls that overlap share it, so it may index
  // scratch memory. Which worker gets which task is not defined: a body must
  // write the same values whoever runs it. Not reentrant; one caller at a time.
  virtual void ParallelFor(
      int num_tasks, absl::FunctionRef<void(int task, int worker)> body) = 0;
};

// As worker `worker`: inside another Executor's ParallelFor, the one that the
// caller is there.
class SerialExecutor final : public Executor {
 public:
  explicit SerialExecutor(int worker = 0) : worker_(worker) {}
  int num_workers() const override { return 1; }
  void ParallelFor(int num_tasks,
                   absl::FunctionRef<void(int task, int worker)> body) override;

 private:
  const int worker_;
};

// A oneTBB pool of `num_threads` workers, the caller being one of them. It is
// the only pool that computes: kernels hold the libraries they call to one
// thread in each worker. REQUIRES: num_threads >= 1.
std::unique_ptr<Executor> MakeParallelExecutor(int num_threads);

// The number of cores this process may use: its affinity mask, capped by the
// CPU quota of its cgroups. At least 1. `root` goes in front of /sys and /proc
// where the quota is looked up, for tests.
int NumUsableCores(const std::string& root = "");

}  // namespace folio

#endif  // RUNTIME_BASE_EXECUTOR_H_
