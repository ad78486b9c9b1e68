// Packed weights lie in panels.

#ifndef RUNTIME_KERNELS_PANEL_H_
#define RUNTIME_KERNELS_PANEL_H_

#include <cstdint>

namespace folio {

// The output columns of a panel, which are multiplied together: one lane, or
// dword of a line, each. The last panel of a matrix may have fewer.
inline constexpr int32_t kPanelColumns = 64;

}  // namespace folio

#endif  // RUNTIME_KERNELS_PANEL_H_
