#include "runtime/kernels/instruction_set.h"

#include <hwy/targets.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace folio {
namespace {

// Highway's targets above a cap, or 0.
int64_t TargetsAbove([[maybe_unused]] std::string_view cap) {
#if HWY_ARCH_X86
  constexpr int64_t kAvx512 = HWY_AVX3 | HWY_AVX3_DL;
  if (cap == "SSE41" || cap == "AVX") return kAvx512 | HWY_AVX2;
  if (cap == "AVX2" || cap == "AVX2_VNNI") return kAvx512;
  if (cap == "AVX512_CORE") return HWY_AVX3_DL;
#endif
  return 0;
}

}  // namespace

void ObeyInstructionSetCap() {
  const char* const cap = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (cap != nullptr) hwy::DisableTargets(TargetsAbove(cap));
}

std::string InstructionSetName() {
  const int64_t targets = hwy::SupportedTargets();
  return hwy::TargetName(targets & -targets);  // The lowest bit is the best.
}

}  // namespace folio
