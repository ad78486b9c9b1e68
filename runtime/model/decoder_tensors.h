// Which tensors a model has: their names, shapes and roles.

#ifndef RUNTIME_MODEL_DECODER_TENSORS_H_
#define RUNTIME_MODEL_DECODER_TENSORS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/model/decoder_config.h"
#include "runtime/weights/tensor_table.h"

namespace folio {

// What a family's files call the parts of a decoder. "$0" stands for the number
// of the layer; ".weight" and ".bias" are added. Parts that a family does not
// have are empty.
struct DecoderNames {
  // Before every name, unless no tensor of the file has it: some exports leave
  // it out.
  std::string prefix;

  std::string token_embedding;
  std::string position_embedding;
  std::string attn_norm;
  std::string q, k, v;  // Either these,
  std::string qkv;      // or one product whose rows are q, then k, then v.
  std::string q_norm, k_norm;
  std::string out;
  std::string ffn_norm;
  std::string gate, up, down;
  std::string final_norm;
  std::string head;

  // Products are stored [in, out] instead of [out, in].
  bool transposed = false;
  // Rows of q and k are stored with the two of each rotary pair side by side,
  // (0, 1), (2, 3)..., instead of half a head apart.
  bool rotary_pairs_adjacent = false;

  // Ends of names of tensors that files may hold and the model does not need:
  // masks and angles that are computed.
  std::vector<std::string> ignored;
};

// The names of all GGUF files.
DecoderNames GgufNames();

// One part's name in a layer, without ".weight" or ".bias".
std::string NameInLayer(const DecoderNames& names, const std::string& part,
                        int32_t layer);

enum class TensorRole { kEmbedding, kMatrix, kHead, kNorm, kBias };

struct ExpectedTensor {
  std::string name;
  std::vector<int64_t> shape;  // As in the file.
  TensorRole role;
};

// Every tensor of the model, in the order in which it is computed.
std::vector<ExpectedTensor> ExpectedTensors(const DecoderConfig& config,
                                            const DecoderNames& names);

int64_t NumParameters(const std::vector<ExpectedTensor>& tensors);

// Takes `names.prefix` away when no tensor of the table has it.
void AdaptPrefix(const TensorTable& table, DecoderNames& names);

// Whether the table has exactly the expected tensors, and those ignored.
// INVALID_ARGUMENT names the tensor (and its file), with the type or shape
// found and expected; `path` is what has to hold the tensors.
absl::Status CheckTensors(const TensorTable& table,
                          const std::vector<ExpectedTensor>& expected,
                          const DecoderConfig& config,
                          const DecoderNames& names, const std::string& path);

}  // namespace folio

#endif  // RUNTIME_MODEL_DECODER_TENSORS_H_
