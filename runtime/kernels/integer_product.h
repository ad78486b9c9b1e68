// A matrix product of integers: weights of int8 or int4, activations of int8.

#ifndef RUNTIME_KERNELS_INTEGER_PRODUCT_H_
#define RUNTIME_KERNELS_INTEGER_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/element_type.h"
#include "runtime/kernels/activations.h"
#include "runtime/kernels/aligned_array.h"
#include "runtime/kernels/int4_groups.h"
#include "runtime/kernels/panel_product.h"

namespace folio {

//   int8  w = scale * q, one scale for each output channel, max |w| / 127. The
//         sum over `in` of products of integers is exact, so that no order of
//         additions and no instruction set changes a bit of it.
//   int4  as QuantiseInt4 has it. The sum over each group of 32 is exact; the
//         groups are added up in f32, in order.
//
// The scale of x's row and the bias come last.
class IntegerProduct final : public PanelProduct {
 public:
  static constexpr int32_t kMaxIn = Activations::kMaxInt8Cols;

  // `grid` is for int4. REQUIRES: IsInteger(type); in <= kMaxIn.
  IntegerProduct(ElementType type, Int4Grid grid, int32_t in, int32_t out);

  void PackRows(int32_t first, std::span<const float> rows) override;
  int64_t bytes() const override;
  void RunPanel(const Activations& x, int32_t first, int32_t rows,
                int32_t panel, std::span<const uint8_t> next,
                float* y) const override;

 private:
  size_t group_bytes() const;
  void PackInt8(int32_t column, std::span<const float> row);
  void PackInt4(int32_t column, std::span<const float> row);

  // A panel is [group of 32 along `in`, the last perhaps padded] of codes, and
  // for int4 steps and minimums; integer_panel.h has the order inside.
  const ElementType type_;
  const Int4Grid grid_;
  const int32_t num_groups_;
  AlignedArray<float> scales_;  // [panel][kPanelColumns], for int8
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_INTEGER_PRODUCT_H_
