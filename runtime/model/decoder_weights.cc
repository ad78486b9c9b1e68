#include "runtime/model/decoder_weights.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "runtime/kernels/bf16.h"
#include "runtime/kernels/parallel_rows.h"

namespace folio {
namespace {

// Rows of one tensor, a part of the rows of a product.
struct MatrixPart {
  std::string name;
  int32_t rows;
  // Rows are stored with the two of each rotary pair side by side.
  bool pairs_adjacent = false;
};

// Rows that are only looked up keep more digits than those that are multiplied:
// they cost nothing but memory.
ElementType EmbeddingType(ElementType weights) {
  return IsInteger(weights) ? ElementType::kBf16 : weights;
}

// Reads the matrices of one model from its source.
class Loader {
 public:
  Loader(const DecoderConfig& config, const DecoderNames& names,
         WeightSource& source, ElementType type, Executor* executor,
         const LoadProgress& progress)
      : config_(config),
        names_(names),
        source_(source),
        type_(type),
        executor_(executor),
        progress_(progress),
        total_(NumParameters(ExpectedTensors(config, names))) {}

  DecoderWeights Load() {
    // The head first: whatever it needs for a moment is then needed while there
    // is little else.
    Linear head = LoadHead();
    EmbeddingTable tokens =
        LoadTable(names_.prefix + names_.token_embedding, config_.vocab_size);
    std::optional<EmbeddingTable> positions;
    if (config_.positions == PositionKind::kLearned) {
      positions = LoadTable(names_.prefix + names_.position_embedding,
                            config_.context_length);
    }
    std::vector<DecoderLayerWeights> layers;
    for (int32_t layer = 0; layer < config_.num_layers; ++layer) {
      layers.push_back(LoadLayer(layer));
    }
    return {.token_embedding = std::move(tokens),
            .position_embedding = std::move(positions),
            .layers = std::move(layers),
            .final_norm = LoadNorm(names_.prefix + names_.final_norm,
                                   config_.hidden_size),
            .head = std::move(head)};
  }

 private:
  DecoderLayerWeights LoadLayer(int32_t layer) {
    const auto name = [&](const std::string& part) {
      return NameInLayer(names_, part, layer);
    };
    const int32_t hidden = config_.hidden_size;
    std::vector<MatrixPart> up = {{name(names_.up), config_.ffn_size}};
    if (config_.ffn == FfnKind::kSwiGlu) {
      up.insert(up.begin(), {name(names_.gate), config_.ffn_size});
    }
    const auto head_norm = [&](const std::string& part) {
      return config_.qk_norm
                 ? LoadVector(name(part) + ".weight", config_.head_dim)
                 : std::vector<float>();
    };
    return {.attn_norm = LoadNorm(name(names_.attn_norm), hidden),
            .qkv = LoadLinear(QkvParts(layer), hidden, config_.qkv_bias),
            .q_norm = head_norm(names_.q_norm),
            .k_norm = head_norm(names_.k_norm),
            .out = LoadLinear({{name(names_.out), hidden}},
                              config_.num_heads * config_.head_dim,
                              config_.out_bias),
            .ffn_norm = LoadNorm(name(names_.ffn_norm), hidden),
            .up = LoadLinear(up, hidden, config_.ffn_bias),
            .down = LoadLinear({{name(names_.down), hidden}}, config_.ffn_size,
                               config_.ffn_bias)};
  }

  std::vector<MatrixPart> QkvParts(int32_t layer) const {
    const auto name = [&](const std::string& part) {
      return NameInLayer(names_, part, layer);
    };
    if (!names_.qkv.empty()) return {{name(names_.qkv), config_.qkv_size()}};
    const int32_t q_rows = config_.num_heads * config_.head_dim;
    const int32_t kv_rows = config_.num_kv_heads * config_.head_dim;
    return {{name(names_.q), q_rows, names_.rotary_pairs_adjacent},
            {name(names_.k), kv_rows, names_.rotary_pairs_adjacent},
            {name(names_.v), kv_rows}};
  }

  Linear LoadHead() {
    const std::string& name = config_.tied_head
                                  ? names_.prefix + names_.token_embedding
                                  : names_.head;
    LinearWeights weights;
    weights.in = config_.hidden_size;
    weights.out = config_.vocab_size;
    weights.int4_grid = GridOf({{name, config_.vocab_size}});
    weights.read_rows = [&](int32_t first, std::span<float> rows) {
      ReadOnce(name + ".weight", int64_t{first} * weights.in, rows);
    };
    Linear head(weights, type_, *executor_);
    if (!config_.tied_head) Done(name + ".weight", head.in(), head.out());
    return head;
  }

  // A product whose rows are those of `parts`, one after the other.
  Linear LoadLinear(const std::vector<MatrixPart>& parts, int32_t in,
                    bool has_bias) {
    LinearWeights weights;
    std::vector<float> bias;
    for (const MatrixPart& part : parts) {
      weights.out += part.rows;
      if (!has_bias) continue;
      const std::vector<float> values =
          LoadVector(part.name + ".bias", part.rows);
      for (int32_t row = 0; row < part.rows; ++row) {
        bias.push_back(values[StoredRow(part, row)]);
      }
    }
    weights.in = in;
    weights.bias = bias;
    weights.int4_grid = GridOf(parts);
    weights.read_rows = [&](int32_t first, std::span<float> rows) {
      ReadRows(parts, in, first, rows);
    };
    Linear linear(weights, type_, *executor_);
    for (const MatrixPart& part : parts) {
      Done(part.name + ".weight", in, part.rows);
    }
    return linear;
  }

  Int4Grid GridOf(const std::vector<MatrixPart>& parts) const {
    const bool affine = std::ranges::any_of(parts, [&](const auto& part) {
      return source_.is_on_affine_grid(part.name + ".weight");
    });
    return affine ? Int4Grid::kAffine : Int4Grid::kSymmetric;
  }

  void ReadRows(const std::vector<MatrixPart>& parts, int32_t in, int32_t first,
                std::span<float> out) {
    for (const MatrixPart& part : parts) {
      const int32_t left = static_cast<int32_t>(out.size() / in);
      const int32_t count = std::clamp(part.rows - first, 0, left);
      if (count > 0) {
        ReadRows(part, in, first, out.first(size_t(count) * in));
        out = out.subspan(size_t(count) * in);
      }
      first = std::max(0, first - part.rows);
    }
  }

  void ReadRows(const MatrixPart& part, int32_t in, int32_t first,
                std::span<float> out) {
    const std::string name = part.name + ".weight";
    const int32_t count = static_cast<int32_t>(out.size() / in);
    if (names_.transposed) {
      std::vector<float> column(count);
      for (int32_t k = 0; k < in; ++k) {
        source_.Read(name, int64_t{k} * part.rows + first, column);
        for (int32_t r = 0; r < count; ++r) out[size_t(r) * in + k] = column[r];
      }
    } else if (part.pairs_adjacent) {
      for (int32_t r = 0; r < count; ++r) {
        source_.Read(name, int64_t{StoredRow(part, first + r)} * in,
                     out.subspan(size_t(r) * in, in));
      }
    } else {
      ReadOnce(name, int64_t{first} * in, out);
    }
  }

  // Reads what is not needed again soon. Any thread.
  void ReadOnce(const std::string& name, int64_t first, std::span<float> out) {
    source_.Read(name, first, out);
    NoteRead(name, static_cast<int64_t>(out.size()));
  }

  // Drops what was read when it is much: dropping a little takes as long, since
  // the other cores have to forget where it was. (What is being read comes back
  // from the file's pages.)
  void NoteRead(const std::string& name, int64_t count) {
    constexpr int64_t kMuch = 4 << 20;  // 8 to 16 MiB.
    if ((num_undropped_ += count) < kMuch) return;
    num_undropped_ = 0;
    source_.Drop(name);
  }

  // Where the file has the row that the model calls `row`. With pairs
  // adjacent, rows i and i + head_dim / 2 of a head are stored as 2 i and
  // 2 i + 1.
  int32_t StoredRow(const MatrixPart& part, int32_t row) const {
    if (!part.pairs_adjacent) return row;
    const int32_t in_head = row % config_.head_dim;
    const int32_t half = config_.head_dim / 2;
    return row - in_head + 2 * (in_head % half) + in_head / half;
  }

  EmbeddingTable LoadTable(const std::string& name, int32_t num_rows) {
    const int32_t cols = config_.hidden_size;
    EmbeddingTable table(EmbeddingType(type_), num_rows, cols);
    ParallelRows(*executor_, {0, num_rows}, [&](Rows some, int /*worker*/) {
      std::vector<float> row(cols);
      for (int32_t r = some.first; r < some.end(); ++r) {
        source_.Read(name + ".weight", int64_t{r} * cols, row);
        table.SetRow(r, row);
      }
      NoteRead(name + ".weight", int64_t{some.count} * cols);
    });
    Done(name + ".weight", num_rows, cols);
    return table;
  }

  NormWeights LoadNorm(const std::string& name, int32_t size) {
    NormWeights norm;
    norm.weight = LoadVector(name + ".weight", size);
    if (config_.norm == NormKind::kLayerNorm) {
      norm.bias = LoadVector(name + ".bias", size);
    }
    return norm;
  }

  std::vector<float> LoadVector(const std::string& name, int32_t size) {
    std::vector<float> values(size);
    source_.Read(name, 0, values);
    done_ += size;
    return values;
  }

  void Done(const std::string& name, int64_t rows, int64_t cols) {
    source_.Drop(name);
    num_undropped_ = 0;
    done_ += rows * cols;
    if (progress_) progress_(done_, total_);
  }

  const DecoderConfig& config_;
  const DecoderNames& names_;
  WeightSource& source_;
  const ElementType type_;
  Executor* const executor_;
  const LoadProgress& progress_;
  const int64_t total_;
  std::atomic<int64_t> num_undropped_ = 0;  // Elements read since a Drop.
  int64_t done_ = 0;
};

int64_t BytesOf(const std::vector<float>& values) {
  return static_cast<int64_t>(values.size() * sizeof(float));
}

int64_t BytesOf(const NormWeights& norm) {
  return BytesOf(norm.weight) + BytesOf(norm.bias);
}

}  // namespace

void EmbeddingTable::SetRow(int32_t row, std::span<const float> values) {
  std::byte* place = data_.data() + size_t(row) * cols_ * BytesOf(type_);
  if (type_ == ElementType::kF32) {
    std::ranges::copy(values, reinterpret_cast<float*>(place));
  } else {
    std::ranges::transform(values, reinterpret_cast<uint16_t*>(place), ToBf16);
  }
}

void EmbeddingTable::CopyRow(int32_t row, std::span<float> out) const {
  std::ranges::fill(out, 0.0f);
  AddRow(row, out);
}

void EmbeddingTable::AddRow(int32_t row, std::span<float> out) const {
  const std::byte* place = data_.data() + size_t(row) * cols_ * BytesOf(type_);
  if (type_ == ElementType::kF32) {
    const float* values = reinterpret_cast<const float*>(place);
    for (int32_t i = 0; i < cols_; ++i) out[i] += values[i];
  } else {
    const uint16_t* values = reinterpret_cast<const uint16_t*>(place);
    for (int32_t i = 0; i < cols_; ++i) out[i] += FromBf16(values[i]);
  }
}

int64_t DecoderWeights::bytes() const {
  int64_t total = token_embedding.bytes() + BytesOf(final_norm) + head.bytes();
  if (position_embedding.has_value()) total += position_embedding->bytes();
  for (const DecoderLayerWeights& layer : layers) {
    total += BytesOf(layer.attn_norm) + layer.qkv.bytes() +
             BytesOf(layer.q_norm) + BytesOf(layer.k_norm) + layer.out.bytes() +
             BytesOf(layer.ffn_norm) + layer.up.bytes() + layer.down.bytes();
  }
  return total;
}

int64_t WeightBytes(const DecoderConfig& config, const DecoderNames& names,
                    ElementType type) {
  const auto product_bytes = [type](int64_t out, int64_t in) -> int64_t {
    constexpr int64_t kGroup = Int4Group::kSize;
    switch (type) {
      case ElementType::kInt8:
        return out * (in + sizeof(float));
      case ElementType::kInt4:
        return out * ((in + kGroup - 1) / kGroup) *
               (kGroup / 2 + sizeof(Int4Group::step));
      default:
        return out * in * BytesOf(type);
    }
  };
  int64_t bytes = 0;
  for (const ExpectedTensor& tensor : ExpectedTensors(config, names)) {
    const int64_t elements = NumParameters({tensor});
    switch (tensor.role) {
      case TensorRole::kNorm:
      case TensorRole::kBias:
        bytes += elements * BytesOf(ElementType::kF32);
        break;
      case TensorRole::kEmbedding:
        bytes += elements * BytesOf(EmbeddingType(type));
        break;
      case TensorRole::kMatrix:
      case TensorRole::kHead: {
        const int64_t out = tensor.shape[names.transposed ? 1 : 0];
        bytes += product_bytes(out, elements / out);
      }
    }
  }
  if (config.tied_head) {
    bytes += product_bytes(config.vocab_size, config.hidden_size);
  }
  return bytes;
}

DecoderWeights LoadDecoderWeights(const DecoderConfig& config,
                                  const DecoderNames& names,
                                  WeightSource& source, ElementType type,
                                  Executor* executor,
                                  const LoadProgress& progress) {
  return Loader(config, names, source, type, executor, progress).Load();
}

}  // namespace folio
