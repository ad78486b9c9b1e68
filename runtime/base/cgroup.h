// What the cgroups of this process, v2 or v1, allow it.

#ifndef RUNTIME_BASE_CGROUP_H_
#define RUNTIME_BASE_CGROUP_H_

#include <cstdint>
#include <optional>
#include <string>

namespace folio {

// A limit of the process's own group holds, and so do those of all its
// ancestors: the tightest counts. Nothing where none is set. `root` goes in
// front of /proc and /sys, for tests.

// Cores that the CPU quota amounts to, rounded up; at least 1.
std::optional<int> CgroupCores(const std::string& root = "");

// Bytes that the memory limit leaves; at least 0. File caches count as free,
// because the kernel drops them first.
std::optional<int64_t> CgroupMemoryLeft(const std::string& root = "");

}  // namespace folio

#endif  // RUNTIME_BASE_CGROUP_H_
