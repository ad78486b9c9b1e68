#include "runtime/kernels/panel_product.h"

#include <algorithm>

namespace folio {
namespace {

size_t NumPanels(int32_t out) {
  return (size_t(out) + kPanelColumns - 1) / kPanelColumns;
}

}  // namespace

PanelProduct::PanelProduct(int32_t in, int32_t out, size_t panel_bytes)
    : in_(in),
      out_(out),
      panel_bytes_(panel_bytes),
      packed_(NumPanels(out) * panel_bytes),
      bias_(NumPanels(out) * kPanelColumns) {}

void PanelProduct::SetBias(std::span<const float> bias) {
  std::copy(bias.begin(), bias.end(), bias_.data());
}

int64_t PanelProduct::bytes() const {
  return static_cast<int64_t>(packed_.size() + bias_.size() * sizeof(float));
}

int32_t PanelProduct::num_panels() const {
  return static_cast<int32_t>(NumPanels(out_));
}

std::span<const uint8_t> PanelProduct::Panel(int32_t panel) const {
  return packed_.span().subspan(panel * panel_bytes_, panel_bytes_);
}

int32_t PanelProduct::PanelCols(int32_t panel) const {
  return std::min(kPanelColumns, out_ - panel * kPanelColumns);
}

}  // namespace folio
