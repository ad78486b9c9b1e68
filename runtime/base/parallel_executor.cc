#include <glog/logging.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

#include <memory>
#include <optional>

#include "runtime/base/executor.h"

namespace folio {
namespace {

class ParallelExecutor final : public Executor {
 public:
  explicit ParallelExecutor(int num_threads)
      : num_workers_(num_threads), arena_(num_threads) {
    // Without it, oneTBB starts no more threads than there are cores.
    if (num_threads > tbb::info::default_concurrency()) {
      more_threads_.emplace(tbb::global_control::max_allowed_parallelism,
                            num_threads);
    }
  }

  int num_workers() const override { return num_workers_; }

  void ParallelFor(
      int num_tasks,
      absl::FunctionRef<void(int task, int worker)> body) override {
    if (num_tasks == 1) return body(0, 0);
    arena_.execute([&] {
      // One task at a time, so that a worker that is late finds work to take.
      tbb::parallel_for(
          tbb::blocked_range<int>(0, num_tasks),
          [&](const tbb::blocked_range<int>& range) {
            const int worker = tbb::this_task_arena::current_thread_index();
            for (int task = range.begin(); task < range.end(); ++task) {
              body(task, worker);
            }
          },
          tbb::simple_partitioner());
    });
  }

 private:
  const int num_workers_;
  std::optional<tbb::global_control> more_threads_;
  tbb::task_arena arena_;
};

}  // namespace

std::unique_ptr<Executor> MakeParallelExecutor(int num_threads) {
  CHECK_GE(num_threads, 1);
  return std::make_unique<ParallelExecutor>(num_threads);
}

}  // namespace folio
