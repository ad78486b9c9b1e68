#include <sched.h>

#include <algorithm>

#include "runtime/base/cgroup.h"
#include "runtime/base/executor.h"

namespace folio {
namespace {

int CoresInAffinityMask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return 1;
  return std::max(1, CPU_COUNT(&mask));
}

}  // namespace

int NumUsableCores(const std::string& root) {
  const int cores = CoresInAffinityMask();
  return std::min(cores, CgroupCores(root).value_or(cores));
}

}  // namespace folio
