#include "runtime/model/decoder_tensors.h"

#include <algorithm>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/shown.h"

namespace folio {
namespace {

// Gathers the tensors of one model.
class Lister {
 public:
  Lister(const DecoderConfig& config, const DecoderNames& names)
      : config_(config), names_(names) {}

  std::vector<ExpectedTensor> List() {
    const int64_t hidden = config_.hidden_size;
    Add(names_.prefix + names_.token_embedding + ".weight",
        {config_.vocab_size, hidden}, TensorRole::kEmbedding);
    if (config_.positions == PositionKind::kLearned) {
      Add(names_.prefix + names_.position_embedding + ".weight",
          {config_.context_length, hidden}, TensorRole::kEmbedding);
    }
    for (int32_t layer = 0; layer < config_.num_layers; ++layer) {
      AddLayer(layer);
    }
    AddNorm(names_.prefix + names_.final_norm, hidden);
    if (!config_.tied_head) {
      Add(names_.head + ".weight", {config_.vocab_size, hidden},
          TensorRole::kHead);
    }
    return std::move(tensors_);
  }

 private:
  void AddLayer(int32_t layer) {
    const auto name = [&](const std::string& part) {
      return NameInLayer(names_, part, layer);
    };
    const int64_t hidden = config_.hidden_size;
    const int64_t q_size = int64_t{config_.num_heads} * config_.head_dim;
    const int64_t kv_size = int64_t{config_.num_kv_heads} * config_.head_dim;
    AddNorm(name(names_.attn_norm), hidden);
    if (names_.qkv.empty()) {
      AddProduct(name(names_.q), q_size, hidden, config_.qkv_bias);
      AddProduct(name(names_.k), kv_size, hidden, config_.qkv_bias);
      AddProduct(name(names_.v), kv_size, hidden, config_.qkv_bias);
    } else {
      AddProduct(name(names_.qkv), config_.qkv_size(), hidden,
                 config_.qkv_bias);
    }
    if (config_.qk_norm) {
      for (const std::string& part : {names_.q_norm, names_.k_norm}) {
        Add(name(part) + ".weight", {config_.head_dim}, TensorRole::kNorm);
      }
    }
    AddProduct(name(names_.out), hidden, q_size, config_.out_bias);
    AddNorm(name(names_.ffn_norm), hidden);
    if (config_.ffn == FfnKind::kSwiGlu) {
      AddProduct(name(names_.gate), config_.ffn_size, hidden, config_.ffn_bias);
    }
    AddProduct(name(names_.up), config_.ffn_size, hidden, config_.ffn_bias);
    AddProduct(name(names_.down), hidden, config_.ffn_size, config_.ffn_bias);
  }

  void AddNorm(const std::string& name, int64_t size) {
    Add(name + ".weight", {size}, TensorRole::kNorm);
    if (config_.norm == NormKind::kLayerNorm) {
      Add(name + ".bias", {size}, TensorRole::kBias);
    }
  }

  void AddProduct(const std::string& name, int64_t out, int64_t in,
                  bool has_bias) {
    Add(name + ".weight",
        names_.transposed ? std::vector<int64_t>{in, out}
                          : std::vector<int64_t>{out, in},
        TensorRole::kMatrix);
    if (has_bias) Add(name + ".bias", {out}, TensorRole::kBias);
  }

  void Add(std::string name, std::vector<int64_t> shape, TensorRole role) {
    tensors_.push_back({std::move(name), std::move(shape), role});
  }

  const DecoderConfig& config_;
  const DecoderNames& names_;
  std::vector<ExpectedTensor> tensors_;
};

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status CheckTensor(const TensorTable& table,
                         const ExpectedTensor& expected,
                         const DecoderConfig& config, const std::string& path) {
  const auto found = table.tensors.find(expected.name);
  if (found != table.tensors.end()) {
    const TensorView& tensor = found->second;
    if (tensor.shape == expected.shape) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "'", tensor.file->path(), "': tensor ", expected.name, " has shape ",
        ShapeText(tensor.shape), "; a ", config.architecture,
        " of this configuration has ", ShapeText(expected.shape)));
  }
  const auto unreadable = table.unreadable.find(expected.name);
  if (unreadable != table.unreadable.end()) {
    std::vector<std::string> types;
    for (int type = 0; type <= static_cast<int>(DType::kQ6_K); ++type) {
      types.emplace_back(InfoOf(static_cast<DType>(type)).name);
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path, "': tensor ", expected.name, " is of type ",
        unreadable->second, ", which is not supported; supported are ",
        absl::StrJoin(types, ", ")));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", path, "': tensor ", expected.name,
                   " is missing; expected shape ", ShapeText(expected.shape)));
}

}  // namespace

DecoderNames GgufNames() {
  return {.token_embedding = "token_embd",
          .position_embedding = "position_embd",
          .attn_norm = "blk.$0.attn_norm",
          .q = "blk.$0.attn_q",
          .k = "blk.$0.attn_k",
          .v = "blk.$0.attn_v",
          .q_norm = "blk.$0.attn_q_norm",
          .k_norm = "blk.$0.attn_k_norm",
          .out = "blk.$0.attn_output",
          .ffn_norm = "blk.$0.ffn_norm",
          .gate = "blk.$0.ffn_gate",
          .up = "blk.$0.ffn_up",
          .down = "blk.$0.ffn_down",
          .final_norm = "output_norm",
          .head = "output",
          .ignored = {"rope_freqs.weight", "attn_rot_embd.weight"}};
}

std::string NameInLayer(const DecoderNames& names, const std::string& part,
                        int32_t layer) {
  return names.prefix + absl::Substitute(part, layer);
}

std::vector<ExpectedTensor> ExpectedTensors(const DecoderConfig& config,
                                            const DecoderNames& names) {
  return Lister(config, names).List();
}

int64_t NumParameters(const std::vector<ExpectedTensor>& tensors) {
  int64_t parameters = 0;
  for (const ExpectedTensor& tensor : tensors) {
    int64_t elements = 1;
    for (const int64_t dimension : tensor.shape) elements *= dimension;
    parameters += elements;
  }
  return parameters;
}

void AdaptPrefix(const TensorTable& table, DecoderNames& names) {
  const auto first = table.tensors.lower_bound(names.prefix);
  const bool used =
      first != table.tensors.end() && first->first.starts_with(names.prefix);
  if (!used) names.prefix.clear();
}

absl::Status CheckTensors(const TensorTable& table,
                          const std::vector<ExpectedTensor>& expected,
                          const DecoderConfig& config,
                          const DecoderNames& names, const std::string& path) {
  std::set<std::string_view> known;
  for (const ExpectedTensor& tensor : expected) {
    FOLIO_RETURN_IF_ERROR(CheckTensor(table, tensor, config, path));
    known.insert(tensor.name);
  }
  const auto is_ignored = [&](const std::string& name) {
    // A head that is not used, because it is tied, is often saved.
    if (config.tied_head && name == names.head + ".weight") return true;
    return std::ranges::any_of(names.ignored, [&](const std::string& end) {
      return name.ends_with(end);
    });
  };
  const auto check_extra = [&](const auto& tensors) {
    for (const auto& [name, tensor] : tensors) {
      if (known.contains(name) || is_ignored(name)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "'", path, "': tensor ", Printable(name), " is not one of the ",
          expected.size(), " that a ", config.architecture,
          " of this configuration has; its output would be wrong without it"));
    }
    return absl::OkStatus();
  };
  FOLIO_RETURN_IF_ERROR(check_extra(table.tensors));
  return check_extra(table.unreadable);
}

}  // namespace folio
