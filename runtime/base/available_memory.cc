#include "runtime/base/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

#include "runtime/base/cgroup.h"

namespace folio {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

// From a line "MemAvailable: <number> kB".
int64_t MemAvailableBytes(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    int64_t kib;
    if (words >> key >> kib && key == "MemAvailable:") return kib * 1024;
  }
  return kUnknown;
}

}  // namespace

int64_t AvailableMemoryBytes(const std::string& root) {
  return std::min(MemAvailableBytes(root),
                  CgroupMemoryLeft(root).value_or(kUnknown));
}

}  // namespace folio
