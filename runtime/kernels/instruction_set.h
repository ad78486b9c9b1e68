// One cap on instruction sets, for oneDNN and for Folio's own kernels.

#ifndef RUNTIME_KERNELS_INSTRUCTION_SET_H_
#define RUNTIME_KERNELS_INSTRUCTION_SET_H_

#include <string>

namespace folio {

// oneDNN reads a cap from the environment variable ONEDNN_MAX_CPU_ISA ("AVX2",
// "AVX512_CORE"..., in any case), or else DNNL_MAX_CPU_ISA. From this call on
// Folio's kernels keep to it, too, so that one variable shows what another
// machine would do. To be called before any kernel is.
void ObeyInstructionSetCap();

// Whether there are vdpbf16ps and its kin, and the cap allows them. If not,
// numbers of bf16 are multiplied as floats.
bool HasBf16DotProducts();

// What Folio's kernels use, in Highway's words: "AVX2", "AVX3" (AVX-512),
// "AVX3_DL" (with dot products of int8).
std::string InstructionSetName();

}  // namespace folio

#endif  // RUNTIME_KERNELS_INSTRUCTION_SET_H_
