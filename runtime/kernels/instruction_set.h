// One cap on instruction sets, for oneDNN and for Folio's own kernels.

#ifndef RUNTIME_KERNELS_INSTRUCTION_SET_H_
#define RUNTIME_KERNELS_INSTRUCTION_SET_H_

#include <string>

namespace folio {

// oneDNN reads a cap from the environment variable ONEDNN_MAX_CPU_ISA ("AVX2",
// "AVX512_CORE"...). From this call on Folio's kernels keep to it, too, so that
// one variable shows what another machine would do.
void ObeyInstructionSetCap();

// What Folio's kernels use, in Highway's words: "AVX2", "AVX3" (AVX-512),
// "AVX3_DL" (with dot products of int8).
std::string InstructionSetName();

}  // namespace folio

#endif  // RUNTIME_KERNELS_INSTRUCTION_SET_H_
