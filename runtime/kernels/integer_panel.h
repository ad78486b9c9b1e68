// One panel of packed integers times some rows: the kernels of IntegerProduct.

#ifndef RUNTIME_KERNELS_INTEGER_PANEL_H_
#define RUNTIME_KERNELS_INTEGER_PANEL_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/kernels/int4_groups.h"
#include "runtime/kernels/panel.h"

namespace folio {

// A panel is kPanelColumns output channels, and along `in` groups of 32. Four
// elements along `in` of one column fill a dword, the dwords of the panel's
// columns a line, and a group has 8 lines:
//
//   int8  [8 lines][64 columns][4], each q + 128
//   int4  [4 pairs of lines][64 columns][4], line i in the low half of a byte
//         and line i + 4 in the high half; then 64 steps of f16, and on an
//         affine grid 64 minimums of f16
inline constexpr int32_t kGroupLines = Int4Group::kSize / 4;
inline constexpr size_t kLineBytes = kPanelColumns * 4;
inline constexpr size_t kInt8GroupBytes = kGroupLines * kLineBytes;
inline constexpr size_t kInt4CodeBytes = kInt8GroupBytes / 2;
inline constexpr size_t kF16LineBytes = kPanelColumns * 2;

struct IntegerPanel {
  const uint8_t* panel;
  size_t group_bytes;
  int32_t num_groups;
  bool affine;
  const float* scales;  // [kPanelColumns], of int8
  const float* bias;    // [kPanelColumns]
  const int8_t* x;
  size_t x_stride;
  const float* row_scales;    // [rows]
  const int32_t* row_sums;    // [rows]
  const int32_t* group_sums;  // [rows][num_groups], of int4
  int32_t rows;
  float* y;
  int32_t y_stride;
  int32_t cols;  // At most kPanelColumns: those that y has.
  // What will be multiplied next, to be asked for; or nothing.
  std::span<const uint8_t> next;
};

// y = x times the panel, scaled, plus the bias; see IntegerProduct.
void MultiplyInt8Panel(const IntegerPanel& panel);
void MultiplyInt4Panel(const IntegerPanel& panel);

}  // namespace folio

#endif  // RUNTIME_KERNELS_INTEGER_PANEL_H_
