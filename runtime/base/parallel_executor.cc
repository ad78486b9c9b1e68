#include <glog/logging.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "runtime/base/executor.h"

namespace folio {
namespace {

// Tells the core that this is a loop of waiting.
void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits in a loop, first on the core, then letting other threads have it.
class Waiting {
 public:
  // Returns how long the wait has been, about; 0 at first.
  std::chrono::microseconds Wait() {
    constexpr int kPauses = 2000;  // Some tens of microseconds.
    if (++rounds_ < kPauses) {
      Pause();
      return std::chrono::microseconds(0);
    }
    const auto now = std::chrono::steady_clock::now();
    if (rounds_ == kPauses) start_ = now;
    std::this_thread::yield();
    return std::chrono::duration_cast<std::chrono::microseconds>(now - start_);
  }

 private:
  int rounds_ = 0;
  std::chrono::steady_clock::time_point start_;
};

// The tasks of one ParallelFor that have not been given out, in one word, so
// that a worker that is late can't take a task of one loop for one of the next:
// the number of the loop, how many tasks it has, and the next of them.
class Tickets {
 public:
  static constexpr int kTaskBits = 22;
  static constexpr int kMaxTasks = (1 << kTaskBits) - 1;

  void Start(int num_tasks) {
    const uint64_t loop =
        (word_.load(std::memory_order_relaxed) >> (2 * kTaskBits)) + 1;
    word_.store(loop << (2 * kTaskBits) | uint64_t(num_tasks) << kTaskBits,
                std::memory_order_release);
  }

  // The next task, or -1.
  int Take() {
    uint64_t word = word_.load(std::memory_order_acquire);
    while (Next(word) < Count(word)) {
      if (word_.compare_exchange_weak(word, word + 1,
                                      std::memory_order_acq_rel)) {
        return Next(word);
      }
    }
    return -1;
  }

 private:
  static int Next(uint64_t word) { return static_cast<int>(word & kMaxTasks); }
  static int Count(uint64_t word) {
    return static_cast<int>(word >> kTaskBits & kMaxTasks);
  }

  std::atomic<uint64_t> word_ = 0;
};

// A forward pass is hundreds of short loops, so a worker, once it is awake,
// stays and waits for the next loop: tbb::parallel_for for each loop would cost
// ten times as much. When nothing has come for a while it goes back to oneTBB,
// and sleeps. The caller never waits for a worker that has not come: whoever is
// there does the tasks.
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

  ~ParallelExecutor() override {
    closed_.store(true);
    Waiting waiting;
    while (num_others_.load() > 0) waiting.Wait();
  }

  int num_workers() const override { return num_workers_; }

  void ParallelFor(
      int num_tasks,
      absl::FunctionRef<void(int task, int worker)> body) override {
    if (num_tasks == 0) return;
    if (num_tasks == 1 || num_workers_ == 1) {
      for (int task = 0; task < num_tasks; ++task) body(task, 0);
      return;
    }
    CHECK_LE(num_tasks, Tickets::kMaxTasks);
    CallOthers();
    body_.store(&body, std::memory_order_relaxed);
    num_left_.store(num_tasks, std::memory_order_relaxed);
    tickets_.Start(num_tasks);
    DoTasks(/*worker=*/0);
    Waiting waiting;
    while (num_left_.load(std::memory_order_acquire) > 0) waiting.Wait();
  }

 private:
  using Body = absl::FunctionRef<void(int task, int worker)>;

  bool DoTasks(int worker) {
    bool did_some = false;
    for (int task = tickets_.Take(); task >= 0; task = tickets_.Take()) {
      // Set before the ticket was there, and valid until the task is done.
      (*body_.load(std::memory_order_relaxed))(task, worker);
      num_left_.fetch_sub(1, std::memory_order_acq_rel);
      did_some = true;
    }
    return did_some;
  }

  // Sees to it that all other workers are here, or on their way.
  void CallOthers() {
    while (num_others_.load(std::memory_order_relaxed) < num_workers_ - 1) {
      num_others_.fetch_add(1);
      arena_.enqueue([this] {
        TakePart();
        num_others_.fetch_sub(1);
      });
    }
  }

  void TakePart() {
    // The caller's number is 0: its slot in the arena is reserved for it.
    const int worker = tbb::this_task_arena::current_thread_index();
    constexpr std::chrono::microseconds kStay(2000);
    Waiting waiting;
    while (!closed_.load(std::memory_order_relaxed)) {
      if (DoTasks(worker)) {
        waiting = Waiting();
      } else if (waiting.Wait() > kStay) {
        return;
      }
    }
  }

  const int num_workers_;
  std::optional<tbb::global_control> more_threads_;
  tbb::task_arena arena_;
  std::atomic<int> num_others_ = 0;  // In TakePart, or about to be.
  std::atomic<bool> closed_ = false;

  // Of the loop at hand.
  std::atomic<const Body*> body_ = nullptr;
  alignas(64) Tickets tickets_;
  alignas(64) std::atomic<int> num_left_ = 0;
};

}  // namespace

std::unique_ptr<Executor> MakeParallelExecutor(int num_threads) {
  CHECK_GE(num_threads, 1);
  return std::make_unique<ParallelExecutor>(num_threads);
}

}  // namespace folio
