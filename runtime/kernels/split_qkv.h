// From the product of the q, k and v weights to what attention reads.

#ifndef RUNTIME_KERNELS_SPLIT_QKV_H_
#define RUNTIME_KERNELS_SPLIT_QKV_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/executor.h"
#include "runtime/kernels/attention_input.h"
#include "runtime/kernels/column_blocks.h"
#include "runtime/kernels/parallel_rows.h"
#include "runtime/kernels/rotary.h"

namespace folio {

// What happens to each head of q and of k on the way, in this order.
struct HeadTransforms {
  // RmsNorm's weights, [head_dim]; empty: no norm.
  std::span<const float> q_norm;
  std::span<const float> k_norm;
  float norm_epsilon = 0;
  // Pairs (i, i + head_dim / 2) are turned by the row's angles; null: they are
  // not.
  const Rotary* rotary = nullptr;
};

inline constexpr int32_t kMaxHeadDim = 1024;

// Splits each row of `qkv`, (num_heads + 2 num_kv_heads) * head_dim columns: q,
// then k, then v, each its heads in order; its row 0 is of the first of `rows`.
// q goes to those of the dense array whose rows are num_heads * head_dim
// columns; K and V of row r are rounded to the type
// of `kv` and go to slots[r], where `kv` says. Each head's int8 are as those of
// a row of Activations.
// A row's result depends on that row alone. REQUIRES: head_dim <= kMaxHeadDim.
void SplitQkv(const ColumnBlocks& qkv, Rows rows, const AttentionShape& shape,
              const HeadTransforms& transforms, const PagedKv& kv,
              std::span<const KvSlot> slots, std::span<float> q,
              Executor& executor);

}  // namespace folio

#endif  // RUNTIME_KERNELS_SPLIT_QKV_H_
