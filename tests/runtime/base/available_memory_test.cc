#include "runtime/base/available_memory.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/temp_dir.h"

namespace folio {
namespace {

TEST(AvailableMemory, IsUnlimitedWhereTheMachineTellsNothing) {
  const TempDir dir;
  EXPECT_EQ(AvailableMemoryBytes(dir.path()),
            std::numeric_limits<int64_t>::max());
}

TEST(AvailableMemory, IsTheSmallerOfTheMachinesAndTheCgroups) {
  const TempDir dir;
  dir.Write("proc/meminfo",
            "MemTotal:       24000000 kB\n"
            "MemFree:          100000 kB\n"
            "MemAvailable:    1000000 kB\n");
  EXPECT_EQ(AvailableMemoryBytes(dir.path()), 1'024'000'000);

  dir.Write("sys/fs/cgroup/memory.current", "1000\n");
  dir.Write("sys/fs/cgroup/memory.max", "2024000000\n");
  EXPECT_EQ(AvailableMemoryBytes(dir.path()), 1'024'000'000);
  dir.Write("sys/fs/cgroup/memory.max", "9000\n");
  EXPECT_EQ(AvailableMemoryBytes(dir.path()), 8'000);
}

TEST(AvailableMemory, IsPositiveHere) { EXPECT_GT(AvailableMemoryBytes(), 0); }

}  // namespace
}  // namespace folio
