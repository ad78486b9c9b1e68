// The definition of every family, in double precision and without a cache.

#ifndef TESTS_RUNTIME_MODEL_NAIVE_DECODER_H_
#define TESTS_RUNTIME_MODEL_NAIVE_DECODER_H_

#include <span>
#include <string>
#include <vector>

#include "runtime/base/types.h"
#include "runtime/model/model_registry.h"

namespace folio {

// Reads the weights of `source` by the Hugging Face names of its family, one
// tensor at a time, and computes with them as the papers say. Shares nothing
// with the decoder but the configuration.
class NaiveDecoder {
 public:
  using Row = std::vector<double>;
  using Rows = std::vector<Row>;

  // `source` must outlive the decoder.
  explicit NaiveDecoder(const ModelSource& source)
      : source_(source), config_(source.config) {}

  // Logits of each position.
  Rows Run(std::span<const TokenId> tokens) const;

 private:
  std::string Name(const std::string& part, int layer) const;
  Row Tensor(const std::string& name, size_t size) const;
  Rows Product(const Rows& x, const std::string& name, int out,
               bool has_bias) const;
  Rows Norm(const Rows& x, const std::string& name) const;
  Rows Attention(const Rows& x, int layer) const;
  void NormaliseHead(const Row& weight, double* head) const;
  void Rotate(int position, double* head) const;
  Rows Ffn(const Rows& x, int layer) const;

  const ModelSource& source_;
  const DecoderConfig& config_;
};

}  // namespace folio

#endif  // TESTS_RUNTIME_MODEL_NAIVE_DECODER_H_
