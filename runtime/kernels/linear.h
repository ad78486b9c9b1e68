// y = x W^T + b, with the columns of y cut between workers.

#ifndef RUNTIME_KERNELS_LINEAR_H_
#define RUNTIME_KERNELS_LINEAR_H_

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

namespace folio {

// The number of rows that a product of `rows` rows really computes: there is a
// kernel for each of some row counts, at most an eighth apart. Source buffers
// need room for that many rows. Never decreases with rows; at most max_rows.
// REQUIRES: 1 <= rows <= max_rows.
int32_t RoundUpRows(int32_t rows, int32_t max_rows);

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

enum class LinearPath {
  kFastest,   // oneDNN, for f32, where its results do not depend on the batch.
  kPortable,  // Folio's own kernels.
};

// One matrix of weights, packed for the machine.
//
// Each row of y depends on the same row of x alone, to the last bit: not on the
// number of rows, max_rows, the number of workers or where columns are cut.
// Folio's own kernels, FloatProduct and IntegerProduct, keep this promise by
// their order of additions. They are the faster ones, too, because they ask for
// the weights that come next: for bf16 they need instructions for dot products,
// and elsewhere they are slow.
//
// For f32, oneDNN keeps the promise in its `brg:` kernels. It rounds
// differently, so the choice must not depend on row counts or cuts either: one
// probe, and a check of a few products when f32 is first used, decide for the
// whole machine. That is enough, because oneDNN picks by instruction set alone:
// of about 400,000 products (in and out from 1 to 80 and those of real models,
// up to 2,048 rows) all are `brg:` with AVX-512, and none when capped to AVX2.
// A product that is an exception to the probe is a failed CHECK, not another
// path.
//
// With weights of bf16, x is rounded to bf16 by whoever makes it, products are
// exact and sums f32. With those of int8 and int4, x is rounded to int8.
//
// Forward must not run twice at the same time on one Linear.
class Linear {
 public:
  // Weights are rounded to `type`, to nearest. Needs memory for a few rows of
  // floats beside the packed weights. REQUIRES: max_rows >= 1. The executor
  // must outlive the Linear; its number of workers is the number of cuts.
  Linear(const LinearWeights& weights, ElementType type, int32_t max_rows,
         Executor* executor, LinearPath path = LinearPath::kFastest);
  ~Linear();
  Linear(Linear&&) noexcept;

  // Whether this machine has fast kernels for products of `type` that keep the
  // promise above.
  static bool IsFast(ElementType type);

  int32_t in() const { return in_; }
  int32_t out() const { return cuts_.back(); }
  ElementType type() const { return type_; }
  // What the packed weights and the bias take.
  int64_t bytes() const;
  // The path in use: kFastest if that was asked for, for f32, and oneDNN keeps
  // the promise above on this machine.
  LinearPath path() const { return path_; }

  // A destination for up to max_rows rows.
  ColumnBlocks MakeOutput() const { return ColumnBlocks(max_rows_, cuts_); }

  // y[0 .. rows) = x[first .. first + rows) W^T + b. All buffers exist already;
  // oneDNN makes a few small allocations of its own, which it frees again.
  // REQUIRES: 1 <= rows <= max_rows; x is of ActivationTypeFor(type()) and has
  // first + RoundUpRows(rows, max_rows) rows, those from first + rows on with
  // anything in them; y has the cuts and max_rows of MakeOutput(). Rows of y
  // from `rows` on may be overwritten; y's maxima, if it keeps any, are those
  // of its new rows. `next`, if any, is the Linear whose Forward comes next:
  // some of its weights are asked for meanwhile.
  void Forward(const Activations& x, int32_t first, int32_t rows,
               ColumnBlocks& y, const Linear* next = nullptr);

  // The kernel of one slice of columns; see linear.cc.
  class Slice;

 private:
  static const Slice* SliceOf(const Linear* linear, size_t slice);

  int32_t in_;
  ElementType type_;
  int32_t max_rows_;
  std::vector<int32_t> cuts_;
  Executor* executor_;
  LinearPath path_;
  std::vector<std::unique_ptr<Slice>> slices_;
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_LINEAR_H_
