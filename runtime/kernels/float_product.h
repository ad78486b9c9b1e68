// A matrix product of floats or bf16 with one order of additions.

#ifndef RUNTIME_KERNELS_FLOAT_PRODUCT_H_
#define RUNTIME_KERNELS_FLOAT_PRODUCT_H_

#include <cstdint>
#include <span>

#include "runtime/base/element_type.h"
#include "runtime/kernels/activations.h"
#include "runtime/kernels/panel_product.h"

namespace folio {

// Each element starts at 0, adds x[k] * w[k] for k = 0, 1, ... one after the
// other, then the bias. Where there are dot products of bf16, they add two
// products at a time, and take numbers below the normal ones as 0; elsewhere
// bf16 is multiplied as floats.
class FloatProduct final : public PanelProduct {
 public:
  // Of weights and x of `type`, kF32 or kBf16.
  FloatProduct(ElementType type, int32_t in, int32_t out);

  void PackRows(int32_t first, std::span<const float> rows) override;
  void RunPanel(const Activations& x, int32_t first, int32_t rows,
                int32_t panel, std::span<const uint8_t> next,
                float* y) const override;

 private:
  // A panel is [line][kPanelColumns] dwords: floats, or pairs of bf16 that are
  // neighbours along `in`, the last perhaps with a 0.
  const ElementType type_;
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_FLOAT_PRODUCT_H_
