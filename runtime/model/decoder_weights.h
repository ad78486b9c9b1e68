// The parameters of a decoder, packed for computing.

#ifndef RUNTIME_MODEL_DECODER_WEIGHTS_H_
#define RUNTIME_MODEL_DECODER_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/element_type.h"
#include "runtime/base/executor.h"
#include "runtime/kernels/aligned_array.h"
#include "runtime/kernels/linear.h"
#include "runtime/model/decoder_config.h"
#include "runtime/model/decoder_tensors.h"
#include "runtime/model/model.h"
#include "runtime/model/weight_source.h"

namespace folio {

// A matrix whose rows are looked up: [num_rows, cols].
class EmbeddingTable {
 public:
  EmbeddingTable(ElementType type, int32_t num_rows, int32_t cols)
      : type_(type),
        cols_(cols),
        data_(AlignedArray<std::byte>::Uninitialised(size_t(num_rows) * cols *
                                                     BytesOf(type))) {}

  // Rounds to the type. Different rows may be set at the same time.
  void SetRow(int32_t row, std::span<const float> values);
  // out = the row, or out += the row.
  void CopyRow(int32_t row, std::span<float> out) const;
  void AddRow(int32_t row, std::span<float> out) const;

  int64_t bytes() const { return static_cast<int64_t>(data_.size()); }

 private:
  ElementType type_;
  int32_t cols_;
  AlignedArray<std::byte> data_;
};

struct NormWeights {
  std::vector<float> weight;
  std::vector<float> bias;  // Empty for an RmsNorm.
};

struct DecoderLayerWeights {
  NormWeights attn_norm;
  Linear qkv;                 // q, then k, then v
  std::vector<float> q_norm;  // [head_dim], or empty
  std::vector<float> k_norm;  // [head_dim], or empty
  Linear out;
  NormWeights ffn_norm;
  Linear up;  // For a SwiGLU gate, then up.
  Linear down;
};

struct DecoderWeights {
  EmbeddingTable token_embedding;
  std::optional<EmbeddingTable> position_embedding;
  std::vector<DecoderLayerWeights> layers;
  NormWeights final_norm;
  Linear head;

  // All of them, in memory.
  int64_t bytes() const;
};

// What weights take in memory in `type`, before packing pads them; a tied head
// is there twice, for looking up and for multiplying. Without the minimums of
// int4 on an affine grid, 2 bytes for each 32 weights.
int64_t WeightBytes(const DecoderConfig& config, const DecoderNames& names,
                    ElementType type);

// Told while weights are loaded: elements so far, of all.
using LoadProgress = std::function<void(int64_t done, int64_t total)>;

// Reads every weight once, in pieces, spread over the executor's workers, and
// rounds matrices to `type` (norms and biases stay f32; embeddings, which are
// only looked up, have bf16 beside integers). Beside the result it
// needs a few rows of floats for each worker. `progress` is called by the
// caller's thread after each matrix. REQUIRES: the source has
// ExpectedTensors(config, names).
DecoderWeights LoadDecoderWeights(const DecoderConfig& config,
                                  const DecoderNames& names,
                                  WeightSource& source, ElementType type,
                                  Executor* executor,
                                  const LoadProgress& progress);

}  // namespace folio

#endif  // RUNTIME_MODEL_DECODER_WEIGHTS_H_
