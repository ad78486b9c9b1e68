// How 32 weights are written in 4 bits each.

#ifndef RUNTIME_KERNELS_INT4_GROUPS_H_
#define RUNTIME_KERNELS_INT4_GROUPS_H_

#include <array>
#include <cstdint>
#include <span>

namespace folio {

// The compiler's f16, which has another name on aarch64.
#if defined(__aarch64__)
using Float16 = __fp16;
#else
using Float16 = _Float16;
#endif

// The grid that a group's weights lie on.
enum class Int4Grid {
  kSymmetric,  // step * (code - 8), as GGUF's Q4_0 has it
  kAffine,     // step * code + minimum, as GGUF's Q4_1 and Q4_K have it
};

// 32 neighbouring weights of one output channel. Step and minimum are f16.
struct Int4Group {
  static constexpr int32_t kSize = 32;

  Float16 step = 0;
  Float16 minimum = 0;                 // 0 on a symmetric grid, and not used.
  std::array<uint8_t, kSize> codes{};  // From 0 to 15.

  float Weight(int32_t i, Int4Grid grid) const {
    const float step_f32 = static_cast<float>(step);
    return grid == Int4Grid::kSymmetric
               ? step_f32 * (codes[i] - 8)
               : step_f32 * codes[i] + static_cast<float>(minimum);
  }
};

// The grid with the least squared error of those that give one weight, the
// greatest in size, each of the codes (symmetric), or that put from 1 to 15
// steps between the least and the greatest (affine). Weights that lie on such a
// grid already, as those of a GGUF file do, stay what they are, up to the
// rounding of step and minimum to f16.
Int4Group QuantiseInt4(std::span<const float, Int4Group::kSize> weights,
                       Int4Grid grid);

}  // namespace folio

#endif  // RUNTIME_KERNELS_INT4_GROUPS_H_
