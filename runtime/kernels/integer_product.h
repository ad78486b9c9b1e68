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

namespace folio {

// y = x W^T + b on the caller's thread.
//
//   int8  w = scale * q, one scale for each output channel, max |w| / 127. The
//         sum over `in` of products of integers is exact, so that no order of
//         additions and no instruction set changes a bit of it.
//   int4  as QuantiseInt4 has it. The sum over each group of 32 is exact; the
//         groups are added up in f32, in order.
//
// The scale of x's row and the bias come last. Each element depends on its own
// row and column alone, to the last bit.
class IntegerProduct {
 public:
  static constexpr int32_t kMaxIn = Activations::kMaxInt8Cols;

  // Whether this machine has instructions for dot products of int8.
  static bool IsFast();

  // All weights 0 at first; `grid` is for int4. REQUIRES: IsInteger(type);
  // in <= kMaxIn.
  IntegerProduct(ElementType type, Int4Grid grid, int32_t in, int32_t out);

  // Quantises rows [first, first + rows.size() / in) of the weight, [out, in],
  // and packs them. REQUIRES: no two threads at a time for one multiple of 64
  // rows.
  void PackRows(int32_t first, std::span<const float> rows);
  // [out], or empty for 0.
  void SetBias(std::span<const float> bias);

  int64_t bytes() const;

  // Panels are 64 columns, but for the last, which may have fewer.
  int32_t num_panels() const;
  std::span<const uint8_t> Panel(int32_t panel) const;

  // Rows [first, first + rows) of x, of int8; writes the columns of one panel
  // of y: dense [rows, out]. Meanwhile asks for `next`, the panel that will be
  // multiplied after it, or nothing.
  void RunPanel(const Activations& x, int32_t first, int32_t rows,
                int32_t panel, std::span<const uint8_t> next, float* y) const;

 private:
  size_t group_bytes() const;
  void PackInt8(int32_t column, std::span<const float> row);
  void PackInt4(int32_t column, std::span<const float> row);

  const ElementType type_;
  const Int4Grid grid_;
  const int32_t in_;
  const int32_t out_;
  const int32_t num_groups_;  // Of 32 along `in`, the last perhaps padded.
  // [panel of 64 columns][group] of codes, and for int4 steps and minimums;
  // integer_panel.h has the order inside.
  AlignedArray<uint8_t> packed_;
  AlignedArray<float> scales_;  // [panel][64], for int8
  AlignedArray<float> bias_;    // [panel][64]
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_INTEGER_PRODUCT_H_
