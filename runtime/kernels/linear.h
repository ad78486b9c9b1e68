// y = x W^T + b, with the columns of y cut between workers.

#ifndef RUNTIME_KERNELS_LINEAR_H_
#define RUNTIME_KERNELS_LINEAR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/element_type.h"
#include "runtime/base/executor.h"
#include "runtime/kernels/activations.h"
#include "runtime/kernels/column_blocks.h"
#include "runtime/kernels/int4_groups.h"
#include "runtime/kernels/parallel_rows.h"

namespace folio {

// The parameters of a Linear. Only read while the Linear is made.
struct LinearWeights {
  int32_t in = 0;
  int32_t out = 0;
  // Writes rows [first, first + rows.size() / in) of the weight, [out, in].
  // Called by several threads at a time, once for each row, with a few rows
  // each time: the weight need never be in memory as a whole.
  std::function<void(int32_t first, std::span<float> rows)> read_rows;
  std::span<const float> bias;  // [out], or empty
  Int4Grid int4_grid = Int4Grid::kSymmetric;
};

// One matrix of weights, packed for the machine.
//
// Each row of y depends on the same row of x alone, to the last bit: not on the
// number of rows, the number of workers or where columns are cut. FloatProduct
// and IntegerProduct keep this promise by their order of additions. They are
// faster than oneDNN's products, too, because they ask for the weights that
// come next; ProductCeiling measures those.
//
// With weights of bf16, x is rounded to bf16 by whoever makes it, products are
// exact and sums f32. With those of int8 and int4, x is rounded to int8.
class Linear {
 public:
  // Weights are rounded to `type`, to nearest, by the executor's workers, as
  // many as there will be cuts. Needs memory for a few rows of floats beside
  // the packed weights.
  Linear(const LinearWeights& weights, ElementType type, Executor& executor);
  ~Linear();
  Linear(Linear&&) noexcept;

  int32_t in() const { return in_; }
  int32_t out() const { return cuts_.back(); }
  ElementType type() const { return type_; }
  // What the packed weights and the bias take.
  int64_t bytes() const;

  // A destination for up to max_rows rows.
  ColumnBlocks MakeOutput(int32_t max_rows) const {
    return ColumnBlocks(max_rows, cuts_);
  }

  // Row i of y = row rows.first + i of x W^T + b. Allocates nothing. `next`, if
  // any, is the Linear whose Forward comes next: some of its weights are asked
  // for meanwhile. Two calls at the same time must have executors of one worker
  // each. REQUIRES: x is of ActivationTypeFor(type()); y has the cuts of
  // MakeOutput(), and room; its maxima, if it keeps any, become those of its
  // new rows.
  void Forward(const Activations& x, Rows rows, ColumnBlocks& y,
               Executor& executor, const Linear* next = nullptr);

 private:
  struct Slice;

  void ForwardAlone(const Activations& x, Rows rows, ColumnBlocks& y,
                    const Linear* next) const;
  void ForwardPanel(const Activations& x, Rows rows, size_t slice,
                    int32_t panel, std::span<const uint8_t> next,
                    ColumnBlocks& y) const;
  std::span<const uint8_t> PanelAfter(size_t slice, int32_t panel,
                                      const Linear* next,
                                      size_t next_slice) const;

  int32_t in_;
  ElementType type_;
  std::vector<int32_t> cuts_;
  std::vector<std::unique_ptr<Slice>> slices_;  // The columns between cuts.
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_LINEAR_H_
