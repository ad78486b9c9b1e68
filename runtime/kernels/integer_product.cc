#include "runtime/kernels/integer_product.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/kernels/integer_panel.h"

namespace folio {
namespace {

constexpr int32_t kGroup = Int4Group::kSize;
static_assert(kGroup == Activations::kGroup);

int32_t NumGroups(int32_t in) { return (in + kGroup - 1) / kGroup; }

size_t GroupBytes(ElementType type, Int4Grid grid) {
  if (type == ElementType::kInt8) return kInt8GroupBytes;
  return kInt4CodeBytes + (grid == Int4Grid::kAffine ? 2 : 1) * kF16LineBytes;
}

}  // namespace

IntegerProduct::IntegerProduct(ElementType type, Int4Grid grid, int32_t in,
                               int32_t out)
    : PanelProduct(in, out, NumGroups(in) * GroupBytes(type, grid)),
      type_(type),
      grid_(grid),
      num_groups_(NumGroups(in)),
      scales_(type == ElementType::kInt8 ? size_t(num_panels()) * kPanelColumns
                                         : 0) {
  CHECK(IsInteger(type));
  CHECK_LE(in, kMaxIn);
}

size_t IntegerProduct::group_bytes() const { return GroupBytes(type_, grid_); }

void IntegerProduct::PackRows(int32_t first, std::span<const float> rows) {
  const int32_t count = static_cast<int32_t>(rows.size() / in_);
  for (int32_t r = 0; r < count; ++r) {
    const std::span<const float> row = rows.subspan(size_t(r) * in_, in_);
    if (type_ == ElementType::kInt8) {
      PackInt8(first + r, row);
    } else {
      PackInt4(first + r, row);
    }
  }
}

void IntegerProduct::PackInt8(int32_t column, std::span<const float> row) {
  float greatest = 0;
  for (const float w : row) greatest = std::max(greatest, std::abs(w));
  const float inverse = greatest > 0 ? 127.0f / greatest : 0.0f;
  scales_.data()[column] = greatest / 127.0f;
  uint8_t* place =
      MutablePanel(column / kPanelColumns) + size_t(column % kPanelColumns) * 4;
  for (int32_t k = 0; k < in_; ++k) {
    const float q = std::clamp(row[k] * inverse, -127.0f, 127.0f);
    place[k / 4 * kLineBytes + k % 4] =
        static_cast<uint8_t>(128 + static_cast<int32_t>(std::nearbyint(q)));
  }
}

void IntegerProduct::PackInt4(int32_t column, std::span<const float> row) {
  uint8_t* group = MutablePanel(column / kPanelColumns);
  const int32_t in_panel = column % kPanelColumns;
  for (int32_t k = 0; k < in_; k += kGroup, group += group_bytes()) {
    float weights[kGroup] = {};
    std::copy_n(row.data() + k, std::min(kGroup, in_ - k), weights);
    const Int4Group quantised = QuantiseInt4(weights, grid_);
    for (int32_t i = 0; i < kGroup / 2; ++i) {
      group[i / 4 * kLineBytes + in_panel * 4 + i % 4] = static_cast<uint8_t>(
          quantised.codes[i] | quantised.codes[i + kGroup / 2] << 4);
    }
    uint8_t* const steps = group + kInt4CodeBytes + in_panel * 2;
    std::memcpy(steps, &quantised.step, 2);
    if (grid_ == Int4Grid::kAffine) {
      std::memcpy(steps + kF16LineBytes, &quantised.minimum, 2);
    }
  }
}

int64_t IntegerProduct::bytes() const {
  return PanelProduct::bytes() +
         static_cast<int64_t>(scales_.size() * sizeof(float));
}

void IntegerProduct::RunPanel(const Activations& x, int32_t first, int32_t rows,
                              int32_t panel, std::span<const uint8_t> next,
                              float* y) const {
  CHECK(x.type() == ElementType::kInt8);
  CHECK(x.has_group_sums() || type_ == ElementType::kInt8);
  const int32_t column = panel * kPanelColumns;
  const IntegerPanel input{.panel = Panel(panel).data(),
                           .group_bytes = group_bytes(),
                           .num_groups = num_groups_,
                           .affine = grid_ == Int4Grid::kAffine,
                           .scales = scales_.data() + column,
                           .bias = bias(panel),
                           .x = reinterpret_cast<const int8_t*>(x.row(first)),
                           .x_stride = x.row_bytes(),
                           .row_scales = x.scales() + first,
                           .row_sums = x.row_sums() + first,
                           .group_sums = x.group_sums(first),
                           .rows = rows,
                           .y = y + column,
                           .y_stride = out_,
                           .cols = PanelCols(panel),
                           .next = next};
  if (type_ == ElementType::kInt8) {
    MultiplyInt8Panel(input);
  } else {
    MultiplyInt4Panel(input);
  }
}

}  // namespace folio
