// Runs a check on every instruction set that this machine has.

#ifndef TESTS_RUNTIME_KERNELS_EACH_TARGET_H_
#define TESTS_RUNTIME_KERNELS_EACH_TARGET_H_

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <string>

namespace folio {

// Highway's kernels have a version for each target; the best one would hide the
// others from a test.
template <typename Check>
void ForEachTarget(const Check& check) {
  int64_t left = hwy::SupportedTargets();
  while (left != 0) {
    const int64_t target = left & -left;
    left &= ~target;
    SCOPED_TRACE(std::string("target ") + hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    check();
  }
  hwy::SetSupportedTargetsForTest(0);  // All again.
}

}  // namespace folio

#endif  // TESTS_RUNTIME_KERNELS_EACH_TARGET_H_
