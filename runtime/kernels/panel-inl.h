// What products by panels of packed weights have in common, on each of
// Highway's targets. Include after foreach_target.h.

#if defined(RUNTIME_KERNELS_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNTIME_KERNELS_PANEL_INL_H_
#undef RUNTIME_KERNELS_PANEL_INL_H_
#else
#define RUNTIME_KERNELS_PANEL_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <span>

#include "runtime/kernels/aligned_array.h"
#include "runtime/kernels/panel.h"
#include "runtime/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace folio {
namespace HWY_NAMESPACE {

// Pieces of at most kMost.
template <int32_t kMost>
int32_t NumPieces(int32_t size) {
  return (size + kMost - 1) / kMost;
}

// Asks for what is multiplied next while something is multiplied by `pieces`
// pieces of rows, evenly, a part with each of its groups: so memory is hardly
// waited for, and hardly rests.
class Ahead {
 public:
  Ahead(std::span<const uint8_t> next, int32_t pieces, int32_t piece,
        int32_t groups)
      : at_(next.data() + next.size() / pieces * piece),
        step_(next.size() / pieces / groups) {}

  HWY_INLINE void Ask() {
    constexpr int kSecondLevel = 2;  // The first has no room for it.
    for (size_t i = 0; i < step_; i += kCacheLineBytes) {
      __builtin_prefetch(at_ + i, /*rw=*/0, kSecondLevel);
    }
    at_ += step_;
  }

 private:
  const uint8_t* at_;
  const size_t step_;
};

// Calls body<count>(row) for the NumPieces<kMost>(rows) pieces of [0, rows).
template <int32_t kMost, typename Body>
HWY_INLINE void InPieces(int32_t rows, const Body& body) {
  // There is a case for each size of the last piece.
  static_assert(kMost <= 6);
  int32_t row = 0;
  for (; row + kMost <= rows; row += kMost) {
    body.template operator()<kMost>(row);
  }
  switch (rows - row) {
    case 5:
      return body.template operator()<std::min(5, kMost)>(row);
    case 4:
      return body.template operator()<std::min(4, kMost)>(row);
    case 3:
      return body.template operator()<std::min(3, kMost)>(row);
    case 2:
      return body.template operator()<std::min(2, kMost)>(row);
    case 1:
      return body.template operator()<1>(row);
    default:
      return;
  }
}

// Where kRows rows of the result go: to y, or through `tile` when the panel is
// the last one and narrower.
template <int32_t kRows>
class Target {
 public:
  // `y` is where the first of them goes; rows are `stride` apart. With `load`,
  // what is there is read first.
  Target(float* y, size_t stride, int32_t cols, bool load)
      : cols_(cols), y_(y), stride_(stride) {
    if (cols_ == kPanelColumns || !load) return;
    for (int32_t r = 0; r < kRows; ++r) {
      std::copy_n(y_ + r * stride_, cols_, tile_ + r * kPanelColumns);
    }
  }
  ~Target() {
    if (cols_ == kPanelColumns) return;
    for (int32_t r = 0; r < kRows; ++r) {
      std::copy_n(tile_ + r * kPanelColumns, cols_, y_ + r * stride_);
    }
  }
  float* Row(int32_t r) {
    return cols_ == kPanelColumns ? y_ + r * stride_
                                  : tile_ + r * kPanelColumns;
  }

 private:
  const int32_t cols_;
  float* const y_;
  const size_t stride_;
  HWY_ALIGN float tile_[kRows * kPanelColumns];
};

}  // namespace HWY_NAMESPACE
}  // namespace folio
HWY_AFTER_NAMESPACE();

#endif  // RUNTIME_KERNELS_PANEL_INL_H_
