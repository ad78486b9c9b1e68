// Where a model's weights come from.

#ifndef RUNTIME_MODEL_WEIGHT_SOURCE_H_
#define RUNTIME_MODEL_WEIGHT_SOURCE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/model/decoder_tensors.h"
#include "runtime/weights/tensor_table.h"

namespace folio {

// Named tensors of floats, read in pieces. Reading is thread-safe.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // Elements [first, first + out.size()) of a tensor, row-major. REQUIRES: the
  // tensor exists and the range is inside it; of a quantised matrix it consists
  // of whole rows.
  virtual void Read(const std::string& name, int64_t first,
                    std::span<float> out) const = 0;

  // Tells that what was read of a tensor need not stay in memory. It may be
  // read again.
  virtual void Drop(const std::string& /*name*/) const {}

  // Whether a matrix is stored in 4 bits with a minimum for each group, which
  // only an affine grid keeps.
  virtual bool is_on_affine_grid(const std::string& /*name*/) const {
    return false;
  }

  // Elements stored, by type ("Q4_K", "F32").
  virtual const std::map<std::string, int64_t>& stored_elements() const = 0;

  // Whether everything is stored as F32 or F16, which have more digits than
  // bf16.
  virtual bool is_stored_as_float() const = 0;
};

// Tensors of files. They must be readable: see CheckTensors.
std::unique_ptr<WeightSource> MakeFileWeights(TensorTable table);

// Weights of about the size that keeps activations near 1; a function of the
// tensors and the seed alone, on every machine. Makes each number when it is
// read.
std::unique_ptr<WeightSource> MakeRandomWeights(
    const std::vector<ExpectedTensor>& tensors, const DecoderNames& names,
    uint64_t seed);

}  // namespace folio

#endif  // RUNTIME_MODEL_WEIGHT_SOURCE_H_
