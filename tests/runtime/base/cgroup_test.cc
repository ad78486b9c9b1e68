#include "runtime/base/cgroup.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "tests/support/temp_dir.h"

namespace folio {
namespace {

// A made-up /proc and /sys/fs/cgroup.
class CgroupTest : public ::testing::Test {
 protected:
  void WriteOwnGroups(std::string_view lines) {
    dir_.Write("proc/self/cgroup", lines);
  }
  void Write(const std::string& name, std::string_view contents) {
    dir_.Write("sys/fs/cgroup/" + name, contents);
  }
  std::optional<int> Cores() const { return CgroupCores(dir_.path()); }
  std::optional<int64_t> MemoryLeft() const {
    return CgroupMemoryLeft(dir_.path());
  }

  TempDir dir_;
};

TEST_F(CgroupTest, LimitsNothingWhereThereAreNoFiles) {
  EXPECT_EQ(Cores(), std::nullopt);
  EXPECT_EQ(MemoryLeft(), std::nullopt);
  WriteOwnGroups("4:memory:/box\n1:cpu:/box\n0::/pod/box\n");
  EXPECT_EQ(Cores(), std::nullopt);
  EXPECT_EQ(MemoryLeft(), std::nullopt);
}

TEST_F(CgroupTest, TakesTheTightestCpuQuotaOfVersion2) {
  WriteOwnGroups("0::/pod/box\n");
  Write("pod/box/cpu.max", "max 100000\n");
  Write("other/cpu.max", "1000 100000\n");
  EXPECT_EQ(Cores(), std::nullopt);
  Write("pod/cpu.max", "350000 100000\n");
  EXPECT_EQ(Cores(), 4) << "3.5 cores, rounded up";
  Write("pod/box/cpu.max", "20000 100000\n");
  EXPECT_EQ(Cores(), 1);
  Write("pod/box/cpu.max", "900000 100000\n");
  EXPECT_EQ(Cores(), 4) << "the ancestor's holds too";
  // A container sees its own group as the root.
  Write("cpu.max", "200000 100000\n");
  EXPECT_EQ(Cores(), 2);
}

TEST_F(CgroupTest, TakesTheTightestCpuQuotaOfVersion1) {
  WriteOwnGroups("9:cpuset:/else\n4:cpu,cpuacct:/pod/box\n0::/\n");
  Write("cpu/pod/box/cpu.cfs_quota_us", "-1\n");
  Write("cpu/pod/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Cores(), std::nullopt);
  Write("cpu/pod/cpu.cfs_quota_us", "150000\n");
  Write("cpu/pod/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(Cores(), 3);
  Write("cpu/pod/box/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(Cores(), 2);
}

TEST_F(CgroupTest, TakesTheTightestMemoryLimitOfVersion2) {
  WriteOwnGroups("0::/pod/box\n");
  Write("pod/box/memory.max", "max\n");
  Write("pod/box/memory.current", "500000\n");
  EXPECT_EQ(MemoryLeft(), std::nullopt);

  Write("pod/memory.max", "9000000\n");
  Write("pod/memory.current", "5000000\n");
  EXPECT_EQ(MemoryLeft(), 4'000'000);
  Write("pod/memory.stat",
        "anon 1\nfile 70000\ninactive_file 20000\nactive_file 3000\n");
  EXPECT_EQ(MemoryLeft(), 4'023'000) << "file caches can be dropped";
  Write("pod/memory.stat", "inactive_file 6000000\n");
  EXPECT_EQ(MemoryLeft(), 9'000'000) << "no more than the limit";

  // A container sees its own group as the root.
  Write("memory.max", "1000\n");
  Write("memory.current", "2000\n");
  EXPECT_EQ(MemoryLeft(), 0);
}

TEST_F(CgroupTest, TakesTheTightestMemoryLimitOfVersion1) {
  WriteOwnGroups("9:cpu:/\n4:hugetlb,memory:/box\n0::/\n");
  Write("memory/box/memory.limit_in_bytes", "8000000\n");
  Write("memory/box/memory.usage_in_bytes", "3000000\n");
  Write("memory/box/memory.stat",
        "inactive_file 7\ntotal_inactive_file 100\ntotal_active_file 50\n");
  EXPECT_EQ(MemoryLeft(), 5'000'150);
  // The usual "no limit", near 2^63, does not overflow.
  Write("memory/box/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(MemoryLeft(), 9223372036854771712 - 2'999'850);
}

}  // namespace
}  // namespace folio
