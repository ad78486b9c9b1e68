#include "runtime/model/weight_source.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/philox.h"
#include "runtime/weights/to_float.h"

namespace folio {
namespace {

class FileWeights final : public WeightSource {
 public:
  explicit FileWeights(TensorTable table) : table_(std::move(table)) {
    for (const auto& [name, tensor] : table_.tensors) {
      stored_[std::string(InfoOf(tensor.dtype).name)] += tensor.num_elements();
    }
  }

  void Read(const std::string& name, int64_t first,
            std::span<float> out) const override {
    ToFloat(Find(name), first, out);
  }

  void Drop(const std::string& name) const override {
    const TensorView& tensor = Find(name);
    tensor.file->DropPages(tensor.bytes);
  }

  bool is_on_affine_grid(const std::string& name) const override {
    const DType dtype = Find(name).dtype;
    return dtype == DType::kQ4_1 || dtype == DType::kQ4_K;
  }

  const std::map<std::string, int64_t>& stored_elements() const override {
    return stored_;
  }

  bool is_stored_as_float() const override {
    return std::ranges::all_of(stored_, [](const auto& stored) {
      return stored.first == "F32" || stored.first == "F16";
    });
  }

 private:
  const TensorView& Find(const std::string& name) const {
    const auto found = table_.tensors.find(name);
    CHECK(found != table_.tensors.end()) << "no tensor " << name;
    return found->second;
  }

  const TensorTable table_;
  std::map<std::string, int64_t> stored_;
};

// The centre and half width of a tensor's uniform distribution.
struct Spread {
  float centre;
  float half_width;
};

Spread SpreadOf(const ExpectedTensor& tensor, bool transposed) {
  const float root3 = 1.7320508f;  // Half the width of variance 1.
  const auto matrix = [&](float gain, int64_t in) -> Spread {
    return {0, gain * root3 / std::sqrt(static_cast<float>(in))};
  };
  switch (tensor.role) {
    case TensorRole::kEmbedding:
      return {0, root3};
    case TensorRole::kMatrix:
      return matrix(1, tensor.shape[transposed ? 0 : 1]);
    case TensorRole::kHead:
      // Logits of variance 16: sampled text is neither noise nor always the
      // same.
      return matrix(4, tensor.shape[1]);
    case TensorRole::kNorm:
      return {1, 0.25f};
    case TensorRole::kBias:
      return {0, 0.1f};
  }
  LOG(FATAL) << "not a TensorRole: " << static_cast<int>(tensor.role);
}

class RandomWeights final : public WeightSource {
 public:
  RandomWeights(const std::vector<ExpectedTensor>& tensors,
                const DecoderNames& names, uint64_t seed)
      : seed_(seed) {
    stored_["F32"] = NumParameters(tensors);
    for (uint64_t i = 0; i < tensors.size(); ++i) {
      tensors_[tensors[i].name] = {i, SpreadOf(tensors[i], names.transposed)};
    }
  }

  void Read(const std::string& name, int64_t first,
            std::span<float> out) const override {
    const auto found = tensors_.find(name);
    CHECK(found != tensors_.end()) << "no tensor " << name;
    const auto& [index, spread] = found->second;
    PhiloxBlock block{};
    for (size_t i = 0; i < out.size(); ++i) {
      const uint64_t place = static_cast<uint64_t>(first) + i;
      if (i == 0 || place % 4 == 0) block = PhiloxAt(seed_, index, place / 4);
      const float uniform =
          static_cast<float>(block[place % 4] >> 8) * 0x1p-23f - 1.0f;
      out[i] = spread.centre + spread.half_width * uniform;
    }
  }

  const std::map<std::string, int64_t>& stored_elements() const override {
    return stored_;
  }

  bool is_stored_as_float() const override { return true; }

 private:
  const uint64_t seed_;
  std::map<std::string, int64_t> stored_;
  std::map<std::string, std::pair<uint64_t, Spread>> tensors_;
};

}  // namespace

std::unique_ptr<WeightSource> MakeFileWeights(TensorTable table) {
  return std::make_unique<FileWeights>(std::move(table));
}

std::unique_ptr<WeightSource> MakeRandomWeights(
    const std::vector<ExpectedTensor>& tensors, const DecoderNames& names,
    uint64_t seed) {
  return std::make_unique<RandomWeights>(tensors, names, seed);
}

}  // namespace folio
