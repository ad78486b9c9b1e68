#include "runtime/base/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/temp_dir.h"
#include "tests/support/test_executors.h"

namespace folio {
namespace {

TEST(SerialExecutorTest, RunsTasksInOrderOnTheCallersThread) {
  SerialExecutor executor;
  EXPECT_EQ(executor.num_workers(), 1);
  std::vector<int> tasks;
  const auto caller = std::this_thread::get_id();
  executor.ParallelFor(4, [&](int task, int worker) {
    EXPECT_EQ(worker, 0);
    EXPECT_EQ(std::this_thread::get_id(), caller);
    tasks.push_back(task);
  });
  EXPECT_THAT(tasks, testing::ElementsAre(0, 1, 2, 3));
}

TEST(ExecutorTest, NoTasksCallsNothing) {
  SerialExecutor serial;
  const auto parallel = MakeParallelTestExecutor(2);
  serial.ParallelFor(0, [](int, int) { FAIL(); });
  parallel->ParallelFor(0, [](int, int) { FAIL(); });
}

class ParallelExecutorTest : public testing::TestWithParam<int> {};

TEST_P(ParallelExecutorTest, RunsEachTaskOnceAndSharesNoWorker) {
  const auto executor = MakeParallelTestExecutor(GetParam());
  ASSERT_EQ(executor->num_workers(), GetParam());
  for (int num_tasks : {1, 2, 3, 7, 100, 1000}) {
    std::vector<std::atomic<int>> calls(num_tasks);
    std::vector<std::atomic<bool>> busy(GetParam());
    executor->ParallelFor(num_tasks, [&](int task, int worker) {
      ASSERT_GE(worker, 0);
      ASSERT_LT(worker, GetParam());
      EXPECT_FALSE(busy[worker].exchange(true)) << "two at once: " << worker;
      ++calls[task];
      busy[worker] = false;
    });
    for (int task = 0; task < num_tasks; ++task) {
      EXPECT_EQ(calls[task], 1) << "task " << task << " of " << num_tasks;
    }
  }
}

// Each task waits for all others to have started; that can only end when as
// many run at once.
TEST_P(ParallelExecutorTest, RunsAsManyTasksAtOnceAsItHasWorkers) {
  const auto executor = MakeParallelTestExecutor(GetParam());
  std::atomic<int> started = 0;
  std::atomic<int> met = 0;
  executor->ParallelFor(GetParam(), [&](int, int) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(60);
    ++started;
    while (started < GetParam() &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    if (started == GetParam()) ++met;
  });
  EXPECT_EQ(met, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Workers, ParallelExecutorTest,
                         testing::Values(1, 2, 4));

TEST(NumUsableCoresTest, FollowsTheAffinityMask) {
  const TempDir no_quota;
  const int cores = NumUsableCores(no_quota.path());
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  EXPECT_EQ(cores, CPU_COUNT(&all));
  EXPECT_GE(NumUsableCores(), 1);
  EXPECT_LE(NumUsableCores(), cores);

  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(NumUsableCores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
}

TEST(NumUsableCoresTest, FollowsTheCpuQuota) {
  const TempDir dir;
  dir.Write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(NumUsableCores(dir.path()), 1);
}

}  // namespace
}  // namespace folio
