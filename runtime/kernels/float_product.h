// A matrix product of floats or bf16 with one order of additions.

#ifndef RUNTIME_KERNELS_FLOAT_PRODUCT_H_
#define RUNTIME_KERNELS_FLOAT_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/element_type.h"
#include "runtime/kernels/activations.h"
#include "runtime/kernels/aligned_array.h"

namespace folio {

// y = x W^T + b on the caller's thread. Each element starts at 0, adds
// x[k] * w[k] for k = 0, 1, ... one after the other, then the bias: it depends
// on its own row and column alone, to the last bit. Where there are dot
// products of bf16, they add two products at a time, and take numbers below the
// normal ones as 0; elsewhere bf16 is multiplied as floats.
class FloatProduct {
 public:
  // Of weights and x of `type`, kF32 or kBf16; all 0 at first.
  FloatProduct(ElementType type, int32_t in, int32_t out);

  // Rounds rows [first, first + rows.size() / in) of the weight, [out, in], and
  // packs them. REQUIRES: no two threads at a time for one multiple of 64 rows.
  void PackRows(int32_t first, std::span<const float> rows);
  // [out], or empty for 0.
  void SetBias(std::span<const float> bias);

  int64_t bytes() const;

  int32_t num_panels() const;
  std::span<const uint8_t> Panel(int32_t panel) const;

  // Rows [first, first + rows) of x, of the type; writes the columns of one
  // panel of y: dense [rows, out]. Meanwhile asks for `next`, the panel that
  // will be multiplied after it, or nothing.
  void RunPanel(const Activations& x, int32_t first, int32_t rows,
                int32_t panel, std::span<const uint8_t> next, float* y) const;

 private:
  size_t panel_dwords() const;

  const ElementType type_;
  const int32_t in_;
  const int32_t out_;
  const int32_t num_lines_;  // Dwords of a column.
  // [panel][line][kPanelColumns]: floats, or pairs of bf16 that are neighbours
  // along `in`, the last perhaps with a 0; columns padded with zeros.
  AlignedArray<uint32_t> packed_;
  AlignedArray<float> bias_;  // [panel][kPanelColumns]
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_FLOAT_PRODUCT_H_
