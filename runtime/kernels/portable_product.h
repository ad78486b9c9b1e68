// A matrix product with one order of additions, for machines where oneDNN does
// not have one.

#ifndef RUNTIME_KERNELS_PORTABLE_PRODUCT_H_
#define RUNTIME_KERNELS_PORTABLE_PRODUCT_H_

#include <cstdint>
#include <span>

#include "runtime/kernels/aligned_array.h"

namespace folio {

// y = x W^T + b on the caller's thread. Each element starts at 0, adds
// x[k] * w[k] for k = 0, 1, ... one after the other, then the bias: it depends
// on its own row and column alone.
class PortableProduct {
 public:
  // Packs weight [out, in]; bias is [out] or empty.
  PortableProduct(std::span<const float> weight, std::span<const float> bias,
                  int32_t in, int32_t out);

  // x: dense [rows, in]; y: dense [rows, out].
  void Run(const float* x, int32_t rows, float* y) const;

 private:
  int32_t in_;
  int32_t out_;
  // [panel][in][kPanelColumns]: columns side by side, padded with zeros.
  AlignedArray<float> packed_;
  AlignedArray<float> bias_;  // [panel][kPanelColumns]
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_PORTABLE_PRODUCT_H_
