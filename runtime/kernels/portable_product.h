// A matrix product with one order of additions, for machines where oneDNN does
// not have one.

#ifndef RUNTIME_KERNELS_PORTABLE_PRODUCT_H_
#define RUNTIME_KERNELS_PORTABLE_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/element_type.h"
#include "runtime/kernels/aligned_array.h"

namespace folio {

// y = x W^T + b on the caller's thread. Each element starts at 0, adds
// x[k] * w[k] for k = 0, 1, ... one after the other, then the bias: it depends
// on its own row and column alone.
class PortableProduct {
 public:
  // Of weights and x of `type`; all 0 at first.
  PortableProduct(ElementType type, int32_t in, int32_t out);

  // Rounds rows [first, first + rows.size() / in) of the weight, [out, in], and
  // packs them. REQUIRES: no two threads at a time for one multiple of 32 rows.
  void PackRows(int32_t first, std::span<const float> rows);
  // [out], or empty for 0.
  void SetBias(std::span<const float> bias);

  int64_t bytes() const;

  // x: dense [rows, in] of the type; y: dense [rows, out].
  void Run(const std::byte* x, int32_t rows, float* y) const;

 private:
  ElementType type_;
  int32_t in_;
  int32_t out_;
  // [panel][in][kPanelColumns]: columns side by side, padded with zeros.
  AlignedArray<std::byte> packed_;
  AlignedArray<float> bias_;  // [panel][kPanelColumns]
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_PORTABLE_PRODUCT_H_
