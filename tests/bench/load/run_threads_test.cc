// Runs on a target that answers from threads of its own, in real time.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "bench/load/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

constexpr int kTokens = 3;

class ThreadedTarget final : public Target {
 public:
  explicit ThreadedTarget(int num_threads) {
    for (int i = 0; i < num_threads; ++i) {
      threads_.emplace_back([this] { Work(); });
    }
  }

  ~ThreadedTarget() override {
    {
      std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    has_work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  absl::StatusOr<TargetInfo> Describe() override { return TargetInfo{}; }

  std::unique_ptr<TargetCall> Start(TargetRequest /*request*/,
                                    TargetListener* listener) override {
    auto job = std::make_shared<Job>();
    job->listener = listener;
    {
      std::lock_guard lock(mutex_);
      queue_.push_back(job);
      max_live_ = std::max(max_live_, ++num_live_);
    }
    has_work_.notify_one();
    return std::make_unique<Call>(std::move(job));
  }

  bool WatchBatches(std::function<void(const BatchSample&)> on_batch) override {
    watcher_ = std::thread([this, on_batch = std::move(on_batch)] {
      while (!is_watch_over_) {
        on_batch({});
        ++num_batches_;
        std::this_thread::yield();
      }
    });
    return true;
  }

  void StopWatching() override {
    is_watch_over_ = true;
    watcher_.join();
  }

  int max_live() const { return max_live_; }
  size_t num_batches() const { return num_batches_; }

 private:
  struct Job {
    TargetListener* listener = nullptr;
    std::atomic<bool> is_cancelled = false;
    std::promise<void> has_ended;
  };

  class Call final : public TargetCall {
   public:
    explicit Call(std::shared_ptr<Job> job) : job_(std::move(job)) {}
    ~Call() override { job_->has_ended.get_future().wait(); }
    void Cancel() override { job_->is_cancelled = true; }

   private:
    const std::shared_ptr<Job> job_;
  };

  void Work() {
    for (;;) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock lock(mutex_);
        has_work_.wait(lock, [this] { return is_over_ || !queue_.empty(); });
        if (queue_.empty()) return;
        job = queue_.front();
        queue_.pop_front();
      }
      for (int i = 0; i < kTokens; ++i) {
        job->listener->OnOutput({.num_tokens = 1});
      }
      {
        std::lock_guard lock(mutex_);
        --num_live_;
      }
      job->listener->OnEnd({.status = job->is_cancelled
                                          ? absl::CancelledError("")
                                          : absl::OkStatus()});
      job->has_ended.set_value();
    }
  }

  std::mutex mutex_;
  std::condition_variable has_work_;
  std::deque<std::shared_ptr<Job>> queue_;
  int num_live_ = 0;
  int max_live_ = 0;
  bool is_over_ = false;
  std::vector<std::thread> threads_;
  std::thread watcher_;
  std::atomic<bool> is_watch_over_ = false;
  std::atomic<size_t> num_batches_ = 0;
};

std::vector<LoadRequest> Load() {
  std::vector<LoadRequest> load(500);
  for (size_t i = 0; i < load.size(); ++i) {
    load[i].arrival = absl::Microseconds(10) * (i % 100);
    if (i % 5 == 4) load[i].previous = i - 1;
  }
  return load;
}

void ExpectAllServed(const RunResult& result) {
  EXPECT_TRUE(result.broke_off.ok());
  EXPECT_THAT(result.send_lags, SizeIs(500));
  EXPECT_THAT(result.send_lags, Each(testing::Ge(absl::ZeroDuration())));
  for (const RequestRecord& record : result.records) {
    ASSERT_TRUE(record.status.ok()) << record.status;
    ASSERT_THAT(record.samples, SizeIs(1));
    EXPECT_THAT(record.samples[0], SizeIs(kTokens));
    EXPECT_TRUE(std::ranges::is_sorted(record.samples[0]));
    EXPECT_LE(record.samples[0].back(), *record.end);
    EXPECT_GE(record.samples[0].front(), absl::ZeroDuration());
  }
}

TEST(RunThreadsTest, AnOpenLoop) {
  ThreadedTarget target(2);
  SystemRunClock clock;
  const RunResult result = folio::Run(Load(), target, clock, {});
  ExpectAllServed(result);
  EXPECT_THAT(result.batches, SizeIs(target.num_batches()));
}

TEST(RunThreadsTest, AClosedLoop) {
  ThreadedTarget target(2);
  SystemRunClock clock;
  ExpectAllServed(folio::Run(Load(), target, clock, {.concurrency = 7}));
  EXPECT_LE(target.max_live(), 7);
}

// Some are cancelled in time, some have ended by then.
TEST(RunThreadsTest, Cancels) {
  std::vector<LoadRequest> load = Load();
  for (LoadRequest& request : load)
    request.cancel_after = absl::Microseconds(20);
  ThreadedTarget target(1);
  SystemRunClock clock;
  const RunResult result = folio::Run(load, target, clock, {});
  EXPECT_TRUE(result.broke_off.ok());
  EXPECT_EQ(Measure(result.records).failed, 0);
}

}  // namespace
}  // namespace folio
