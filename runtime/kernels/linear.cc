#include "runtime/kernels/linear.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>

#include "runtime/kernels/float_product.h"
#include "runtime/kernels/instruction_set.h"
#include "runtime/kernels/integer_product.h"
#include "runtime/kernels/panel.h"
#include "runtime/kernels/panel_product.h"
#include "runtime/kernels/vocab_reduce.h"

namespace folio {
namespace {

void SayHowBf16IsMultiplied() {
  static const bool said = [] {
    LOG(INFO) << "Matrix products of bf16: "
              << (HasBf16DotProducts()
                      ? "with dot products of bf16."
                      : "as floats, because there are no dot products of bf16 "
                        "here.");
    return true;
  }();
  static_cast<void>(said);
}

std::unique_ptr<PanelProduct> MakeProduct(ElementType type, Int4Grid grid,
                                          int32_t in, int32_t out) {
  if (IsInteger(type)) {
    return std::make_unique<IntegerProduct>(type, grid, in, out);
  }
  return std::make_unique<FloatProduct>(type, in, out);
}

// The product of output columns [first, first + count), a panel at a time.
std::unique_ptr<PanelProduct> Pack(const LinearWeights& weights,
                                   ElementType type, int32_t first,
                                   int32_t count) {
  auto product = MakeProduct(type, weights.int4_grid, weights.in, count);
  std::vector<float> rows;
  for (int32_t c = 0; c < count; c += kPanelColumns) {
    rows.resize(size_t(weights.in) * std::min(kPanelColumns, count - c));
    weights.read_rows(first + c, rows);
    product->PackRows(c, rows);
  }
  if (!weights.bias.empty()) {
    product->SetBias(weights.bias.subspan(first, count));
  }
  return product;
}

}  // namespace

struct Linear::Slice {
  std::unique_ptr<PanelProduct> product;
  std::atomic<int32_t> next_panel = 0;  // That nobody has begun.
};

Linear::Linear(const LinearWeights& weights, ElementType type,
               Executor& executor)
    : in_(weights.in),
      type_(type),
      cuts_(ColumnBlocks::EvenCuts(weights.out, executor.num_workers())),
      slices_(cuts_.size() - 1) {
  CHECK(weights.bias.empty() || weights.bias.size() == size_t(weights.out));
  if (type == ElementType::kBf16) SayHowBf16IsMultiplied();
  executor.ParallelFor(
      static_cast<int>(slices_.size()), [&](int slice, int /*worker*/) {
        const int32_t first = cuts_[slice];
        slices_[slice] = std::make_unique<Slice>();
        slices_[slice]->product =
            Pack(weights, type, first, cuts_[slice + 1] - first);
      });
}

Linear::~Linear() = default;
Linear::Linear(Linear&&) noexcept = default;

int64_t Linear::bytes() const {
  int64_t bytes = 0;
  for (const auto& slice : slices_) bytes += slice->product->bytes();
  return bytes;
}

void Linear::Forward(const Activations& x, Rows rows, ColumnBlocks& y,
                     Executor& executor, const Linear* next) {
  CHECK(x.type() == ActivationTypeFor(type_));
  CHECK_EQ(x.cols(), in_);
  CHECK_GE(rows.first, 0);
  CHECK_LE(rows.end(), x.max_rows());
  CHECK_LE(rows.count, y.max_rows());
  CHECK(y.cuts() == cuts_);
  if (executor.num_workers() == 1) return ForwardAlone(x, rows, y, next);
  for (const auto& slice : slices_) {
    slice->next_panel.store(0, std::memory_order_relaxed);
  }
  // Everybody begins with a slice of their own, which is read from the front,
  // and helps with the others' afterwards.
  const size_t num_slices = slices_.size();
  executor.ParallelFor(static_cast<int>(num_slices), [&](int task,
                                                         int /*worker*/) {
    for (size_t i = 0; i < num_slices; ++i) {
      const size_t s = (task + i) % num_slices;
      const int32_t num_panels = slices_[s]->product->num_panels();
      for (int32_t panel; (panel = slices_[s]->next_panel.fetch_add(
                               1, std::memory_order_relaxed)) < num_panels;) {
        ForwardPanel(x, rows, s, panel, PanelAfter(s, panel, next, s), y);
      }
    }
  });
}

void Linear::ForwardAlone(const Activations& x, Rows rows, ColumnBlocks& y,
                          const Linear* next) const {
  for (size_t s = 0; s < slices_.size(); ++s) {
    const bool is_last = s + 1 == slices_.size();
    for (int32_t panel = 0; panel < slices_[s]->product->num_panels();
         ++panel) {
      ForwardPanel(
          x, rows, s, panel,
          PanelAfter(s, panel, is_last ? next : this, is_last ? 0 : s + 1), y);
    }
  }
}

void Linear::ForwardPanel(const Activations& x, Rows rows, size_t slice,
                          int32_t panel, std::span<const uint8_t> next,
                          ColumnBlocks& y) const {
  const int32_t block = static_cast<int32_t>(slice);
  slices_[slice]->product->RunPanel(x, rows.first, rows.count, panel, next,
                                    y.block_data(block));
  if (!y.keeps_maxima()) return;
  static_assert(kPanelColumns % ColumnBlocks::kStripe == 0);
  const int32_t begin = panel * kPanelColumns;
  const int32_t end = std::min(begin + kPanelColumns, y.block_cols(block));
  FindMaxima(block, begin, end, rows.count, y);
}

// What follows a panel of a slice, after its last one the first of slice
// `next_slice` of `next`, which may not be there.
std::span<const uint8_t> Linear::PanelAfter(size_t slice, int32_t panel,
                                            const Linear* next,
                                            size_t next_slice) const {
  const PanelProduct& product = *slices_[slice]->product;
  if (panel + 1 < product.num_panels()) return product.Panel(panel + 1);
  // (A matrix of few columns has fewer slices than another.)
  if (next == nullptr || next_slice >= next->slices_.size()) return {};
  return next->slices_[next_slice]->product->Panel(0);
}

}  // namespace folio
