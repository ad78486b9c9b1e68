#include "runtime/kernels/instruction_set.h"

#include <glog/logging.h>
#include <hwy/targets.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "absl/strings/match.h"

namespace folio {
namespace {

// What a cap leaves out: Highway's targets above it, and dot products of bf16,
// which no target of Highway's stands for.
struct Cap {
  std::string_view name;
  int64_t targets_above = 0;
  bool bf16_dot_products = false;
};

#if HWY_ARCH_X86
constexpr int64_t kAvx512 = HWY_AVX3 | HWY_AVX3_DL;
constexpr int64_t kAvx2 = kAvx512 | HWY_AVX2;
constexpr int64_t kVnni = HWY_AVX3_DL;
#else
constexpr int64_t kAvx512 = 0;
constexpr int64_t kAvx2 = 0;
constexpr int64_t kVnni = 0;
#endif

constexpr Cap kCaps[] = {
    {"SSE41", kAvx2},
    {"AVX", kAvx2},
    {"AVX2", kAvx512},
    {"AVX2_VNNI", kAvx512},
    {"AVX512_CORE", kVnni},
    {"AVX512_CORE_VNNI", 0},
    {"AVX512_CORE_BF16", 0, true},
    {"AVX512_CORE_FP16", 0, true},
    {"AVX512_CORE_AMX", 0, true},
    {"ALL", 0, true},
    {"DEFAULT", 0, true},
};

bool bf16_dot_products_allowed = true;

// As oneDNN reads it: the older name counts where the newer one is not set.
const char* CapInEnvironment() {
  const char* const cap = std::getenv("ONEDNN_MAX_CPU_ISA");
  return cap != nullptr ? cap : std::getenv("DNNL_MAX_CPU_ISA");
}

}  // namespace

void ObeyInstructionSetCap() {
  const char* const name = CapInEnvironment();
  if (name == nullptr) return;
  for (const Cap& cap : kCaps) {
    if (!absl::EqualsIgnoreCase(name, std::string(cap.name))) continue;
    hwy::DisableTargets(cap.targets_above);
    bf16_dot_products_allowed = cap.bf16_dot_products;
    return;
  }
  LOG(WARNING) << "ONEDNN_MAX_CPU_ISA is '" << name
               << "', which is no instruction set that Folio knows; its own "
                  "kernels use what the machine has";
}

bool HasBf16DotProducts() {
#if HWY_ARCH_X86
  static const bool has = __builtin_cpu_supports("avx512bf16");
  return has && bf16_dot_products_allowed;
#else
  return false;
#endif
}

std::string InstructionSetName() {
  const int64_t targets = hwy::SupportedTargets();
  return hwy::TargetName(targets & -targets);  // The lowest bit is the best.
}

}  // namespace folio
