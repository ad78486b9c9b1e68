// config.json of any family, and GGUF metadata in its place.

#include <glog/logging.h>

#include <string_view>

#include "runtime/model/decoder_tensors.h"
#include "runtime/model/model_config.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/touch.h"
#include "tests/support/gguf_builder.h"

namespace folio {
namespace {

constexpr std::string_view kLlama = R"({"architectures":["LlamaForCausalLM"],
"vocab_size":50,"hidden_size":16,"intermediate_size":24,"num_hidden_layers":2,
"num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":64,
"rms_norm_eps":1e-5,"hidden_act":"silu","bos_token_id":1,"eos_token_id":[2,3],
"rope_scaling":{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,
"high_freq_factor":4.0,"original_max_position_embeddings":32}})";
constexpr std::string_view kQwen = R"({"architectures":["Qwen3ForCausalLM"],
"vocab_size":50,"hidden_size":16,"intermediate_size":24,"num_hidden_layers":2,
"num_attention_heads":4,"head_dim":8,"max_position_embeddings":64,
"rope_parameters":{"rope_theta":1e6,"rope_type":"linear","factor":2},
"use_sliding_window":true,"sliding_window":8,"max_window_layers":0})";
constexpr std::string_view kGpt2 = R"({"architectures":["GPT2LMHeadModel"],
"vocab_size":50,"n_embd":16,"n_head":4,"n_layer":2,"n_positions":64,
"n_inner":null,"activation_function":"gelu_new"})";
constexpr std::string_view kTiny = R"({"architectures":["TinyCausalLM"],
"vocab_size":50,"hidden_size":16,"num_heads":4,"num_layers":2})";

std::string Gguf() {
  return GgufBuilder()
      .Add("general.architecture", "llama")
      .Add("llama.context_length", uint32_t{64})
      .Add("llama.embedding_length", uint32_t{16})
      .Add("llama.block_count", uint32_t{2})
      .Add("llama.feed_forward_length", uint32_t{24})
      .Add("llama.attention.head_count", uint32_t{4})
      .Add("llama.rope.scaling.type", "linear")
      .Add("llama.rope.scaling.factor", 2.0f)
      .Add("tokenizer.ggml.eos_token_id", uint32_t{2})
      .AddF32("token_embd.weight", {3, 16}, std::vector<float>(48, 1.0f))
      .AddF32("rope_freqs.weight", {2}, {1, 2})
      .Build();
}

void Use(const absl::StatusOr<FamilyConfig>& read, DecoderNames (*names)()) {
  if (!read.ok()) {
    CheckRefusal(read.status());
    return;
  }
  CHECK(ValidateConfig(read->config).ok());
  // (A hundred thousand layers would be refused.)
  CHECK_GT(NumParameters(ExpectedTensors(read->config, names())), 0);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  return {std::string(kLlama), std::string(kQwen), std::string(kGpt2),
          std::string(kTiny), Gguf()};
}

}  // namespace folio

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("GGUF")) {
    const auto file = folio::GgufFile::Parse(folio::FuzzFile(data, size));
    if (!file.ok()) return 0;
    const auto read = folio::ReadGgufModelConfig(**file);
    folio::Use(read, read.ok() ? read->family->gguf_names : nullptr);
  } else {
    const auto files = folio::ModelFiles::InMemory(
        std::string(folio::kFuzzFile), {{"config.json", {bytes, size}}});
    const auto read = folio::ReadHfModelConfig(files);
    folio::Use(read, read.ok() ? read->family->hf_names : nullptr);
  }
  return 0;
}
