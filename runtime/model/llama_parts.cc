#include "runtime/model/llama_parts.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/family.h"

namespace folio {
namespace {

absl::Status ReadLlama3Scaling(const HfConfig& hf, RopeScaling& scaling) {
  scaling.kind = RopeScaling::Kind::kLlama3;
  FOLIO_RETURN_IF_ERROR(hf.Read("factor", scaling.factor));
  FOLIO_RETURN_IF_ERROR(hf.Read("low_freq_factor", scaling.low_freq_factor));
  FOLIO_RETURN_IF_ERROR(hf.Read("high_freq_factor", scaling.high_freq_factor));
  return hf.Read("original_max_position_embeddings", scaling.original_context);
}

absl::Status ReadScaling(const HfConfig& hf, RopeScaling& scaling) {
  // It was called `type` first.
  const std::string key = hf.Has("rope_type") ? "rope_type" : "type";
  std::string type;
  FOLIO_RETURN_IF_ERROR(hf.Read(key, type));
  if (type == "default") return absl::OkStatus();
  if (type == "linear") {
    scaling.kind = RopeScaling::Kind::kLinear;
    return hf.Read("factor", scaling.factor);
  }
  if (type == "llama3") return ReadLlama3Scaling(hf, scaling);
  return Unsupported(hf.Where(key), type, "default, linear, llama3");
}

absl::Status ReadRope(const HfConfig& hf, DecoderConfig& config) {
  FOLIO_RETURN_IF_ERROR(hf.ReadOptional("rope_theta", config.rope_theta));
  double rotated = 1;
  FOLIO_RETURN_IF_ERROR(hf.ReadOptional("partial_rotary_factor", rotated));
  if (rotated != 1) {
    return Unsupported(hf.Where("partial_rotary_factor"), absl::StrCat(rotated),
                       "1");
  }
  // Newer files keep everything about the rotary embedding in one object.
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!hf.Has(key)) continue;
    FOLIO_ASSIGN_OR_RETURN(const HfConfig rope, hf.Inside(key));
    FOLIO_RETURN_IF_ERROR(rope.ReadOptional("rope_theta", config.rope_theta));
    FOLIO_RETURN_IF_ERROR(ReadScaling(rope, config.rope_scaling));
  }
  return absl::OkStatus();
}

absl::Status ReadHeads(const HfConfig& hf, DecoderConfig& config) {
  FOLIO_RETURN_IF_ERROR(hf.Read("num_attention_heads", config.num_heads));
  config.num_kv_heads = config.num_heads;
  FOLIO_RETURN_IF_ERROR(
      hf.ReadOptional("num_key_value_heads", config.num_kv_heads));
  config.head_dim = 0;  // The hidden size by the number of heads.
  return hf.ReadOptional("head_dim", config.head_dim);
}

absl::Status ReadGgufScaling(const GgufConfig& gguf, DecoderConfig& config) {
  // Older files have a factor and no type, or have it under another name.
  const char* factor = gguf.Has("rope.scale_linear") ? "rope.scale_linear"
                                                     : "rope.scaling.factor";
  std::string type = gguf.Has(factor) ? "linear" : "none";
  FOLIO_RETURN_IF_ERROR(gguf.ReadOptional("rope.scaling.type", type));
  if (type == "linear") {
    config.rope_scaling.kind = RopeScaling::Kind::kLinear;
    return gguf.Read(factor, config.rope_scaling.factor);
  }
  if (type != "none") {
    return Unsupported(gguf.Where("rope.scaling.type"), type,
                       "none, linear, and the tensor rope_freqs.weight");
  }
  return absl::OkStatus();
}

absl::Status ReadGgufHeads(const GgufConfig& gguf, DecoderConfig& config) {
  FOLIO_RETURN_IF_ERROR(gguf.Read("attention.head_count", config.num_heads));
  config.num_kv_heads = config.num_heads;
  FOLIO_RETURN_IF_ERROR(
      gguf.ReadOptional("attention.head_count_kv", config.num_kv_heads));
  config.head_dim = 0;
  FOLIO_RETURN_IF_ERROR(
      gguf.ReadOptional("attention.key_length", config.head_dim));
  // Without the key, heads share the hidden size.
  const int32_t head_dim =
      config.head_dim > 0 ? config.head_dim
                          : config.hidden_size / std::max(1, config.num_heads);
  for (const char* key : {"attention.value_length", "rope.dimension_count"}) {
    int32_t size = head_dim;
    FOLIO_RETURN_IF_ERROR(gguf.ReadOptional(key, size));
    if (size != head_dim) {
      return Unsupported(gguf.Where(key), absl::StrCat(size),
                         absl::StrCat("the size of a head, ", head_dim));
    }
  }
  return absl::OkStatus();
}

}  // namespace

DecoderConfig LlamaDefaults() {
  DecoderConfig config;
  config.vocab_size = 256;
  config.context_length = 4096;
  config.hidden_size = 64;
  config.num_layers = 2;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.ffn_size = 172;
  return config;
}

absl::Status ReadLlamaHf(const HfConfig& hf, DecoderConfig& config) {
  FOLIO_RETURN_IF_ERROR(hf.Read("vocab_size", config.vocab_size));
  FOLIO_RETURN_IF_ERROR(
      hf.Read("max_position_embeddings", config.context_length));
  FOLIO_RETURN_IF_ERROR(hf.Read("hidden_size", config.hidden_size));
  FOLIO_RETURN_IF_ERROR(hf.Read("num_hidden_layers", config.num_layers));
  FOLIO_RETURN_IF_ERROR(hf.Read("intermediate_size", config.ffn_size));
  FOLIO_RETURN_IF_ERROR(ReadHeads(hf, config));
  FOLIO_RETURN_IF_ERROR(ReadRope(hf, config));
  config.norm_epsilon = 1e-6;  // What transformers takes without the key.
  FOLIO_RETURN_IF_ERROR(hf.ReadOptional("rms_norm_eps", config.norm_epsilon));
  FOLIO_RETURN_IF_ERROR(
      hf.ReadOptional("tie_word_embeddings", config.tied_head));
  std::string activation = "silu";
  FOLIO_RETURN_IF_ERROR(hf.ReadOptional("hidden_act", activation));
  if (activation == "silu" || activation == "swish") return absl::OkStatus();
  return Unsupported(hf.Where("hidden_act"), activation, "silu");
}

absl::Status ReadLlamaGguf(const GgufConfig& gguf, DecoderConfig& config) {
  FOLIO_RETURN_IF_ERROR(gguf.Read("context_length", config.context_length));
  FOLIO_RETURN_IF_ERROR(gguf.Read("embedding_length", config.hidden_size));
  FOLIO_RETURN_IF_ERROR(gguf.Read("block_count", config.num_layers));
  FOLIO_RETURN_IF_ERROR(gguf.Read("feed_forward_length", config.ffn_size));
  FOLIO_RETURN_IF_ERROR(ReadGgufHeads(gguf, config));
  FOLIO_RETURN_IF_ERROR(gguf.ReadOptional("rope.freq_base", config.rope_theta));
  FOLIO_RETURN_IF_ERROR(ReadGgufScaling(gguf, config));
  FOLIO_RETURN_IF_ERROR(
      gguf.Read("attention.layer_norm_rms_epsilon", config.norm_epsilon));
  int32_t window = 0;
  FOLIO_RETURN_IF_ERROR(gguf.ReadOptional("attention.sliding_window", window));
  if (window != 0) config.window = window;
  int32_t experts = 0;
  FOLIO_RETURN_IF_ERROR(gguf.ReadOptional("expert_count", experts));
  if (experts == 0) return absl::OkStatus();
  return Unsupported(gguf.Where("expert_count"), absl::StrCat(experts), "0");
}

DecoderNames LlamaHfNames() {
  return {.prefix = "model.",
          .token_embedding = "embed_tokens",
          .attn_norm = "layers.$0.input_layernorm",
          .q = "layers.$0.self_attn.q_proj",
          .k = "layers.$0.self_attn.k_proj",
          .v = "layers.$0.self_attn.v_proj",
          .q_norm = "layers.$0.self_attn.q_norm",
          .k_norm = "layers.$0.self_attn.k_norm",
          .out = "layers.$0.self_attn.o_proj",
          .ffn_norm = "layers.$0.post_attention_layernorm",
          .gate = "layers.$0.mlp.gate_proj",
          .up = "layers.$0.mlp.up_proj",
          .down = "layers.$0.mlp.down_proj",
          .final_norm = "norm",
          .head = "lm_head",
          .ignored = {".rotary_emb.inv_freq"}};
}

absl::Status ReadWindowOfAllLayers(const HfConfig& hf, DecoderConfig& config) {
  // What transformers takes without the keys.
  int32_t window = 4096;
  int32_t first_layer = 28;
  bool use_window = false;
  FOLIO_RETURN_IF_ERROR(hf.ReadOptional("use_sliding_window", use_window));
  FOLIO_RETURN_IF_ERROR(hf.ReadOptional("sliding_window", window));
  FOLIO_RETURN_IF_ERROR(hf.ReadOptional("max_window_layers", first_layer));
  if (!use_window) first_layer = config.num_layers;
  int32_t num_windows = std::max(0, config.num_layers - first_layer);
  if (hf.Has("layer_types")) {
    std::vector<std::string> types;
    FOLIO_RETURN_IF_ERROR(hf.Read("layer_types", types));
    for (const std::string& type : types) {
      if (type == "full_attention" || type == "sliding_attention") continue;
      return Unsupported(hf.Where("layer_types"), type,
                         "full_attention, sliding_attention");
    }
    num_windows = static_cast<int32_t>(
        std::ranges::count(types, std::string("sliding_attention")));
  }
  if (num_windows == 0) return absl::OkStatus();
  config.window = window;
  if (num_windows >= config.num_layers) return absl::OkStatus();
  return Unsupported(
      hf.Where(hf.Has("layer_types") ? "layer_types" : "max_window_layers"),
      absl::StrCat("a sliding window in ", num_windows, " of ",
                   config.num_layers, " layers"),
      "a window in all layers or in none");
}

}  // namespace folio
