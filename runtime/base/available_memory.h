// How much memory this process can still take before the kernel ends it.

#ifndef RUNTIME_BASE_AVAILABLE_MEMORY_H_
#define RUNTIME_BASE_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace folio {

// The smaller of MemAvailable in /proc/meminfo and what the memory limits of
// this process's cgroups leave. INT64_MAX when the machine tells nothing. An
// estimate: others take and free memory meanwhile. `root` goes in front of
// /proc and /sys, for tests.
int64_t AvailableMemoryBytes(const std::string& root = "");

}  // namespace folio

#endif  // RUNTIME_BASE_AVAILABLE_MEMORY_H_
