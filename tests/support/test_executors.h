// Executors for tests of what must not depend on the executor.

#ifndef TESTS_SUPPORT_TEST_EXECUTORS_H_
#define TESTS_SUPPORT_TEST_EXECUTORS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/executor.h"

namespace folio {

// Says it has `num_workers`, but runs everything on the caller's thread, last
// task first.
class BackwardExecutor final : public Executor {
 public:
  explicit BackwardExecutor(int num_workers) : num_workers_(num_workers) {}
  int num_workers() const override { return num_workers_; }
  void ParallelFor(
      int num_tasks,
      absl::FunctionRef<void(int task, int worker)> body) override {
    for (int task = num_tasks - 1; task >= 0; --task) {
      body(task, task % num_workers_);
    }
  }

 private:
  const int num_workers_;
};

// Starts std::threads each time, which ThreadSanitizer understands.
class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(int num_workers) : num_workers_(num_workers) {}
  int num_workers() const override { return num_workers_; }
  void ParallelFor(
      int num_tasks,
      absl::FunctionRef<void(int task, int worker)> body) override {
    std::atomic<int> next = 0;
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < num_workers_; ++worker) {
      threads.emplace_back([&, worker] {
        for (int task = next++; task < num_tasks; task = next++) {
          body(task, worker);
        }
      });
    }
  }

 private:
  const int num_workers_;
};

// Task t is always worker (t % num_workers)'s, on a thread of its own; so all
// workers have a part in every call with enough tasks. Counts such calls.
class PinnedExecutor final : public Executor {
 public:
  explicit PinnedExecutor(int num_workers) : num_workers_(num_workers) {}
  int num_workers() const override { return num_workers_; }
  void ParallelFor(
      int num_tasks,
      absl::FunctionRef<void(int task, int worker)> body) override {
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < std::min(num_workers_, num_tasks); ++worker) {
      threads.emplace_back([&, worker] {
        for (int task = worker; task < num_tasks; task += num_workers_) {
          body(task, worker);
        }
      });
    }
    ++(num_tasks >= num_workers_ ? num_shared_calls_ : num_unshared_calls_);
  }

  // Calls in which every worker had a part, and others.
  int64_t num_shared_calls() const { return num_shared_calls_; }
  int64_t num_unshared_calls() const { return num_unshared_calls_; }

 private:
  const int num_workers_;
  int64_t num_shared_calls_ = 0;
  int64_t num_unshared_calls_ = 0;
};

// Folio's own, or where oneTBB is left out, the nearest thing.
inline std::unique_ptr<Executor> MakeParallelTestExecutor(int num_threads) {
#ifdef __SANITIZE_THREAD__
  return std::make_unique<ThreadExecutor>(num_threads);
#else
  return MakeParallelExecutor(num_threads);
#endif
}

}  // namespace folio

#endif  // TESTS_SUPPORT_TEST_EXECUTORS_H_
