// What Folio's own matrix products have in common.

#ifndef RUNTIME_KERNELS_PANEL_PRODUCT_H_
#define RUNTIME_KERNELS_PANEL_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/kernels/activations.h"
#include "runtime/kernels/aligned_array.h"
#include "runtime/kernels/panel.h"

namespace folio {

// y = x W^T + b on the caller's thread, panel by panel. Each element depends on
// its own row and column alone, to the last bit.
class PanelProduct {
 public:
  virtual ~PanelProduct() = default;

  // Rounds rows [first, first + rows.size() / in) of the weight, [out, in], and
  // packs them. REQUIRES: no two threads at a time for one multiple of
  // kPanelColumns rows.
  virtual void PackRows(int32_t first, std::span<const float> rows) = 0;
  // [out], or empty for 0.
  void SetBias(std::span<const float> bias);

  // What packed weights and the bias take.
  virtual int64_t bytes() const;

  int32_t num_panels() const;
  // The packed weights of a panel.
  std::span<const uint8_t> Panel(int32_t panel) const;

  // Rows [first, first + rows) of x, of the type that the product takes; writes
  // the columns of one panel of y: dense [rows, out]. Meanwhile asks for
  // `next`, the panel that will be multiplied after it, or nothing.
  virtual void RunPanel(const Activations& x, int32_t first, int32_t rows,
                        int32_t panel, std::span<const uint8_t> next,
                        float* y) const = 0;

 protected:
  // All weights 0 at first.
  PanelProduct(int32_t in, int32_t out, size_t panel_bytes);

  uint8_t* MutablePanel(int32_t panel) {
    return packed_.data() + panel * panel_bytes_;
  }
  // Of a panel's columns, with 0 for those that it does not have.
  const float* bias(int32_t panel) const {
    return bias_.data() + size_t(panel) * kPanelColumns;
  }
  // How many columns a panel has.
  int32_t PanelCols(int32_t panel) const;

  const int32_t in_;
  const int32_t out_;

 private:
  const size_t panel_bytes_;
  AlignedArray<uint8_t> packed_;  // [panel][panel_bytes_]
  AlignedArray<float> bias_;      // [panel][kPanelColumns]
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_PANEL_PRODUCT_H_
