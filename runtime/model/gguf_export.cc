#include "runtime/model/gguf_export.h"

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/family.h"
#include "runtime/weights/gguf_writer.h"

namespace folio {
namespace {

constexpr char kArchitecture[] = "llama";

absl::Status CheckIsPlainLlama(const DecoderConfig& config,
                               const Family& llama) {
  const auto refuse = [](const std::string& found) {
    return absl::InvalidArgumentError(
        absl::StrCat("--write-gguf: the model ", found,
                     "; what can be written is a llama without biases, scaled "
                     "positions and sliding window"));
  };
  if (config.architecture != llama.architecture) {
    return refuse(absl::StrCat("is a ", config.architecture));
  }
  if (config.qkv_bias || config.out_bias || config.ffn_bias) {
    return refuse("has biases");
  }
  if (config.rope_scaling.kind != RopeScaling::Kind::kNone ||
      !config.rope_factors.empty()) {
    return refuse("scales its positions");
  }
  if (config.window.has_value()) return refuse("has a sliding window");
  return absl::OkStatus();
}

void AddMetadata(const ModelSource& source, GgufWriter& writer) {
  const DecoderConfig& config = source.config;
  const auto add = [&](const char* key, int32_t value) {
    writer.Add(absl::StrCat(kArchitecture, ".", key),
               static_cast<uint32_t>(value));
  };
  writer.Add("general.architecture", std::string_view(kArchitecture));
  writer.Add("general.name", source.name);
  add("vocab_size", config.vocab_size);
  add("context_length", config.context_length);
  add("embedding_length", config.hidden_size);
  add("block_count", config.num_layers);
  add("feed_forward_length", config.ffn_size);
  add("attention.head_count", config.num_heads);
  add("attention.head_count_kv", config.num_kv_heads);
  add("attention.key_length", config.head_dim);
  add("attention.value_length", config.head_dim);
  add("rope.dimension_count", config.head_dim);
  writer.Add(absl::StrCat(kArchitecture, ".rope.freq_base"),
             static_cast<float>(config.rope_theta));
  writer.Add(absl::StrCat(kArchitecture, ".attention.layer_norm_rms_epsilon"),
             static_cast<float>(config.norm_epsilon));
  // What llama.cpp calls a model that has no tokenizer.
  writer.Add("tokenizer.ggml.model", std::string_view("no_vocab"));
}

// Where a tensor of the file comes from.
struct Origin {
  std::string name;
  int64_t row_elements = 0;
  bool pairs_rows = false;  // Its rows are in another order in the file.
};

// With pairs side by side, rows 2 i and 2 i + 1 of a head are its rows i and
// i + head_dim / 2.
int64_t RowOfPaired(int64_t row, int32_t head_dim) {
  const int64_t in_head = row % head_dim;
  return row - in_head + in_head / 2 + in_head % 2 * (head_dim / 2);
}

// Elements [first, first + out.size()) of a tensor of the file: whole rows.
void ReadTensor(const ModelSource& source, const Origin& origin, int64_t first,
                std::span<float> out) {
  if (!origin.pairs_rows) {
    source.weights->Read(origin.name, first, out);
    return;
  }
  const int64_t cols = origin.row_elements;
  for (int64_t at = 0; at < static_cast<int64_t>(out.size()); at += cols) {
    const int64_t row =
        RowOfPaired((first + at) / cols, source.config.head_dim);
    source.weights->Read(origin.name, row * cols, out.subspan(at, cols));
  }
}

}  // namespace

absl::StatusOr<DType> FindGgufExportType(const std::string& name) {
  constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"bf16", DType::kBF16},
      {"f32", DType::kF32},
      {"q8_0", DType::kQ8_0},
      {"q4_0", DType::kQ4_0}};
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is not one of bf16, f32, q8_0, q4_0"));
}

absl::Status ExportGguf(const ModelSource& source, DType type,
                        const std::string& path) {
  FOLIO_ASSIGN_OR_RETURN(const Family* llama,
                         FindGgufFamily(kArchitecture, "--write-gguf"));
  FOLIO_RETURN_IF_ERROR(CheckIsPlainLlama(source.config, *llama));
  const DecoderNames names = llama->gguf_names();
  const bool reorders =
      names.rotary_pairs_adjacent && !source.names.rotary_pairs_adjacent;
  // One order, whatever the names.
  const std::vector<ExpectedTensor> from =
      ExpectedTensors(source.config, source.names);
  const std::vector<ExpectedTensor> to = ExpectedTensors(source.config, names);
  GgufWriter writer;
  AddMetadata(source, writer);
  std::map<std::string, Origin> origins;
  for (size_t i = 0; i < to.size(); ++i) {
    const std::vector<int64_t>& shape = to[i].shape;
    const DType dtype = to[i].role == TensorRole::kNorm ? DType::kF32 : type;
    const DTypeInfo& info = InfoOf(dtype);
    if (shape.back() % info.block_elements != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--write-gguf: rows of ", to[i].name, " have ", shape.back(),
          " elements, which are not whole blocks of ", info.block_elements,
          ", as ", std::string(info.name), " has; use f32 or bf16"));
    }
    const bool is_q_or_k = to[i].name.ends_with(".attn_q.weight") ||
                           to[i].name.ends_with(".attn_k.weight");
    origins[to[i].name] = {from[i].name, shape.back(), reorders && is_q_or_k};
    writer.AddTensor(to[i].name, dtype, shape);
  }
  return writer.Write(
      path, [&](const std::string& name, int64_t first, std::span<float> out) {
        ReadTensor(source, origins.at(name), first, out);
      });
}

}  // namespace folio
