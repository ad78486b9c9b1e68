#include "runtime/model/model_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/model/embedded_model.h"
#include "tests/runtime/model/step_runner.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr ModelLimits kLimits{.max_batch_tokens = 8, .max_logits_rows = 8};

ModelSource RandomSource(const std::string& items) {
  auto location = FindModel("random:" + items);
  CHECK(location.ok()) << location.status();
  auto source = OpenModelSource(*location);
  CHECK(source.ok()) << source.status();
  return *std::move(source);
}

std::vector<std::vector<float>> LogitsOf(Model& model) {
  const TokenId tokens[] = {1, 2, 3};
  StepRunner runner(model, 8, 1, 3);
  runner.Add(0, tokens);
  return runner.Run();
}

// A folder in the Hugging Face layout, made of a random model.
class Folder {
 public:
  explicit Folder(const std::string& items) : items_(items) {
    const ModelSource source = RandomSource(items);
    for (const ExpectedTensor& tensor :
         ExpectedTensors(source.config, source.names)) {
      std::vector<float> values(NumParameters({tensor}));
      source.weights->Read(tensor.name, 0, values);
      AddTensor(tensor.name, "F32", tensor.shape, values);
    }
  }

  void AddTensor(const std::string& name, const std::string& dtype,
                 const std::vector<int64_t>& shape,
                 std::span<const float> values) {
    const size_t begin = data_.size();
    data_.append(reinterpret_cast<const char*>(values.data()),
                 values.size_bytes());
    header[name] = {{"dtype", dtype},
                    {"shape", shape},
                    {"data_offsets", {begin, data_.size()}}};
  }

  // Writes the folder and opens it.
  absl::StatusOr<std::unique_ptr<Model>> Open() {
    dir.Write("m/config.json", config.dump());
    const std::string text = header.dump();
    const uint64_t size = text.size();
    std::string file(sizeof(size), '\0');
    std::memcpy(file.data(), &size, sizeof(size));
    dir.Write("m/model.safetensors", file + text + data_);
    return OpenModel(dir.path() + "/m", kLimits, &executor_);
  }

  void ExpectRefusal(const std::vector<std::string>& parts) {
    const auto model = Open();
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(model.status().message()), HasSubstr(part));
    }
  }

  void ExpectTheRandomModel() {
    const auto model = Open();
    ASSERT_TRUE(model.ok()) << model.status();
    const auto random = OpenModel("random:" + items_, kLimits, &executor_);
    ASSERT_TRUE(random.ok()) << random.status();
    EXPECT_EQ(LogitsOf(**model), LogitsOf(**random));
  }

  TempDir dir;
  json config;
  json header;

 private:
  const std::string items_;
  std::string data_;
  SerialExecutor executor_;
};

class TinyFolderTest : public testing::Test {
 protected:
  TinyFolderTest() {
    folder_.config = {{"architectures", {"TinyCausalLM"}},
                      {"vocab_size", 20},
                      {"hidden_size", 8},
                      {"num_heads", 2},
                      {"num_layers", 1}};
  }

  Folder folder_{"vocab=20,hidden=8,heads=2,layers=1,seed=5"};
  json& config_ = folder_.config;
  json& header_ = folder_.header;
};

TEST_F(TinyFolderTest, OpensAFolderWithItsWeights) {
  config_["eos_token_id"] = {3, 4};
  config_["bos_token_id"] = 1;
  config_["context_length"] = 100;
  const auto model = folder_.Open();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().name, "m");
  EXPECT_EQ((*model)->info().context_length, 100);
  EXPECT_EQ((*model)->info().bos_token, 1);
  EXPECT_THAT((*model)->info().eos_tokens, testing::ElementsAre(3, 4));
  folder_.ExpectTheRandomModel();
}

TEST_F(TinyFolderTest, EosMayBeANumberOrNull) {
  config_["eos_token_id"] = 7;
  config_["bos_token_id"] = nullptr;
  const auto model = folder_.Open();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT((*model)->info().eos_tokens, testing::ElementsAre(7));
  EXPECT_FALSE((*model)->info().bos_token.has_value());
}

TEST_F(TinyFolderTest, TheGenerationConfigsEosComesFirst) {
  config_["eos_token_id"] = 7;
  folder_.dir.Write("m/generation_config.json",
                    R"({"eos_token_id": [5, 6], "temperature": 0.6})");
  const auto model = folder_.Open();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT((*model)->info().eos_tokens, testing::ElementsAre(5, 6));
  folder_.dir.Write("m/generation_config.json", R"({"eos_token_id": 20})");
  folder_.ExpectRefusal({"config.json", "EOS token is 20", "0 to 19"});
  folder_.dir.Write("m/generation_config.json", "[]");
  folder_.ExpectRefusal({"generation_config.json", "object"});
}

TEST_F(TinyFolderTest, RefusesUnknownArchitectures) {
  config_["architectures"] = {"MambaForCausalLM"};
  folder_.ExpectRefusal({"config.json", "MambaForCausalLM", "TinyCausalLM",
                         "LlamaForCausalLM", "MistralForCausalLM",
                         "Qwen2ForCausalLM", "Qwen3ForCausalLM",
                         "GPT2LMHeadModel"});
}

TEST_F(TinyFolderTest, RefusesMissingArchitectures) {
  for (const json& wrong : {json(), json(3), json::array(), json({1}),
                            json({"TinyCausalLM", "Other"})}) {
    config_["architectures"] = wrong;
    folder_.ExpectRefusal({"architectures", "TinyCausalLM"});
  }
  config_ = json::array();
  folder_.ExpectRefusal({"architectures"});
}

TEST_F(TinyFolderTest, RefusesBadNumbers) {
  const json good = config_;
  const struct {
    const char* key;
    json value;
    const char* message;
  } kCases[] = {
      {"vocab_size", 0, "vocabulary size is 0"},
      {"vocab_size", -5, "vocabulary size is -5"},
      {"vocab_size", "20", "vocab_size is \"20\""},
      {"vocab_size", 20.5, "vocab_size is 20.5"},
      {"vocab_size", 18446744073709551615u, "18446744073709551615"},
      {"hidden_size", 1 << 30, "hidden size is 1073741824"},
      {"hidden_size", nullptr, "hidden_size is missing"},
      {"num_heads", 3, "number of heads, 3, does not divide"},
      {"num_layers", 1000000, "number of layers is 1000000"},
      {"context_length", 0, "context length is 0"},
      {"eos_token_id", 20, "EOS token is 20"},
      {"eos_token_id", {1, "x"}, "eos_token_id is \"x\""},
      {"bos_token_id", -1, "BOS token is -1"},
  };
  for (const auto& c : kCases) {
    config_ = good;
    config_[c.key] = c.value;
    folder_.ExpectRefusal({"config.json", c.message});
  }
}

TEST_F(TinyFolderTest, RefusesTensorsThatAreNotTheModels) {
  const json good = header_;
  config_["hidden_size"] = 16;
  folder_.ExpectRefusal(
      {"model.safetensors", "token_emb.weight", "[20, 8]", "[20, 16]"});
  config_["hidden_size"] = 8;
  config_["num_layers"] = 2;
  folder_.ExpectRefusal({"blocks.1.attn_norm.weight", "missing", "[8]"});
  config_["num_layers"] = 1;
  header_["norm.bias"]["dtype"] = "I32";
  folder_.ExpectRefusal({"norm.bias", "I32", "F32", "Q4_K"});
  header_ = good;
  folder_.AddTensor("extra.weight", "F32", {1}, std::vector<float>{1});
  folder_.ExpectRefusal({"extra.weight", "is not one of the 16"});
}

// A config.json that promises a huge model costs nothing: the file is compared
// first.
TEST_F(TinyFolderTest, AllocatesNothingThatTheFileDoesNotHold) {
  config_["vocab_size"] = 1 << 22;
  config_["hidden_size"] = 1 << 15;
  config_["num_heads"] = 32;
  config_["num_layers"] = 1024;
  folder_.ExpectRefusal({"token_emb.weight", "[4194304, 32768]"});
}

// What config.json of a random model of each family says.
const json kLlamaConfig = {{"architectures", {"LlamaForCausalLM"}},
                           {"vocab_size", 20},
                           {"hidden_size", 16},
                           {"intermediate_size", 24},
                           {"num_hidden_layers", 2},
                           {"num_attention_heads", 4},
                           {"num_key_value_heads", 2},
                           {"max_position_embeddings", 64},
                           {"rms_norm_eps", 1e-5}};
constexpr char kLlamaItems[] =
    "vocab=20,hidden=16,heads=4,kv_heads=2,ffn=24,layers=2,context=64";

class LlamaFolderTest : public testing::Test {
 protected:
  LlamaFolderTest() { folder_.config = kLlamaConfig; }

  Folder folder_{std::string("arch=llama,") + kLlamaItems};
  json& config_ = folder_.config;
};

TEST_F(LlamaFolderTest, Opens) { folder_.ExpectTheRandomModel(); }

TEST_F(LlamaFolderTest, TiedModelsMayBringTheirHead) {
  config_["tie_word_embeddings"] = true;
  EXPECT_TRUE(folder_.Open().ok());
  folder_.header.erase("lm_head.weight");
  folder_.ExpectRefusal({"model.safetensors"});  // Now there is a hole.
}

TEST_F(LlamaFolderTest, AnglesThatAreSavedAreIgnored) {
  folder_.AddTensor("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {2},
                    std::vector<float>{1, 2});
  folder_.ExpectTheRandomModel();
}

TEST_F(LlamaFolderTest, RefusesWhatIsNotSupportedByName) {
  const struct {
    const char* key;
    json value;
    std::vector<std::string> parts;
  } kCases[] = {
      {"hidden_act", "relu", {"hidden_act", "relu", "silu"}},
      {"rope_scaling",
       {{"rope_type", "yarn"}, {"factor", 4.0}},
       {"rope_scaling.rope_type", "yarn", "linear", "llama3"}},
      {"rope_scaling",
       {{"type", "dynamic"}, {"factor", 4.0}},
       {"rope_scaling.type", "dynamic", "linear", "llama3"}},
      {"rope_scaling", 4, {"rope_scaling is 4", "object"}},
      {"rope_scaling", {{"type", "linear"}}, {"rope_scaling.factor"}},
      {"rope_scaling",
       {{"type", "linear"}, {"factor", 0}},
       {"rope scaling factor is 0"}},
      {"rope_scaling",
       {{"rope_type", "llama3"},
        {"factor", 8},
        {"low_freq_factor", 4},
        {"high_freq_factor", 4},
        {"original_max_position_embeddings", 32}},
       {"high_freq_factor is 4", "above"}},
      {"rope_parameters",
       {{"rope_type", "longrope"}},
       {"rope_parameters.rope_type", "longrope"}},
      {"partial_rotary_factor", 0.5, {"partial_rotary_factor", "0.5"}},
      {"num_key_value_heads", 3, {"KV heads is 3", "does not divide"}},
      {"head_dim", 3, {"head size is 3", "even"}},
      {"rms_norm_eps", -1, {"norm epsilon is -1"}},
  };
  const json good = config_;
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.key);
    config_ = good;
    config_[c.key] = c.value;
    std::vector<std::string> parts = c.parts;
    parts.push_back("config.json");
    folder_.ExpectRefusal(parts);
  }
}

TEST_F(LlamaFolderTest, RopeScalingChangesTheOutput) {
  SerialExecutor executor;
  const auto plain = folder_.Open();
  ASSERT_TRUE(plain.ok()) << plain.status();
  const json kScalings[] = {
      {{"type", "linear"}, {"factor", 2}},
      {{"rope_type", "llama3"},
       {"factor", 8},
       {"low_freq_factor", 1},
       {"high_freq_factor", 4},
       {"original_max_position_embeddings", 8}},
  };
  for (const json& scaling : kScalings) {
    config_["rope_scaling"] = scaling;
    const auto scaled = folder_.Open();
    ASSERT_TRUE(scaled.ok()) << scaled.status();
    EXPECT_NE(LogitsOf(**scaled), LogitsOf(**plain)) << scaling;
  }
  config_["rope_scaling"] = {{"rope_type", "default"}};
  folder_.ExpectTheRandomModel();
}

// A window in some layers only would need page tables of two kinds.
TEST(QwenFolderTest, RefusesAWindowInSomeLayers) {
  Folder folder(std::string("arch=qwen2,") + kLlamaItems);
  folder.config = kLlamaConfig;
  folder.config["architectures"] = {"Qwen2ForCausalLM"};
  folder.config["rms_norm_eps"] = 1e-6;
  folder.ExpectTheRandomModel();
  folder.config["sliding_window"] = 8;
  folder.ExpectTheRandomModel();  // It is not used.
  folder.config["use_sliding_window"] = true;
  folder.config["max_window_layers"] = 2;
  folder.ExpectTheRandomModel();  // No layer has it.
  folder.config["max_window_layers"] = 1;
  folder.ExpectRefusal({"max_window_layers", "1 of 2 layers"});
  folder.config["layer_types"] = {"sliding_attention", "full_attention"};
  folder.ExpectRefusal({"layer_types", "1 of 2 layers"});
  folder.config["layer_types"] = {"full_attention", "chunked_attention"};
  folder.ExpectRefusal({"layer_types", "chunked_attention"});
  folder.config["layer_types"] = {"full_attention", "full_attention"};
  folder.ExpectTheRandomModel();  // It says more than max_window_layers.
  folder.config.erase("layer_types");
  folder.config["max_window_layers"] = 0;
  const auto windowed = folder.Open();
  ASSERT_TRUE(windowed.ok()) << windowed.status();
  EXPECT_EQ((*windowed)->info().window, 8);
}

TEST(MistralFolderTest, TheWindowMayBeNull) {
  Folder folder(std::string("arch=mistral,window=8,") + kLlamaItems);
  folder.config = kLlamaConfig;
  folder.config["architectures"] = {"MistralForCausalLM"};
  folder.config["sliding_window"] = 8;
  folder.ExpectTheRandomModel();
  folder.config["sliding_window"] = nullptr;
  const auto whole = folder.Open();
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_FALSE((*whole)->info().window.has_value());
  folder.config.erase("sliding_window");
  const auto first = folder.Open();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ((*first)->info().window, 4096);
  folder.config["sliding_window"] = 0;
  folder.ExpectRefusal({"sliding window is 0"});
}

TEST(Qwen3FolderTest, HeadsHaveASizeOfTheirOwn) {
  Folder folder(std::string("arch=qwen3,head_dim=10,") + kLlamaItems);
  folder.config = kLlamaConfig;
  folder.config["architectures"] = {"Qwen3ForCausalLM"};
  folder.config["rms_norm_eps"] = 1e-6;
  folder.config["head_dim"] = 10;
  folder.ExpectTheRandomModel();
}

TEST(Gpt2FolderTest, OpensAndRefuses) {
  Folder folder("arch=gpt2,vocab=20,hidden=16,heads=4,layers=2,context=64");
  folder.config = {{"architectures", {"GPT2LMHeadModel"}},
                   {"vocab_size", 20},
                   {"n_embd", 16},
                   {"n_head", 4},
                   {"n_layer", 2},
                   {"n_positions", 64},
                   {"n_inner", nullptr},
                   {"layer_norm_epsilon", 1e-5}};
  folder.ExpectTheRandomModel();
  folder.config["activation_function"] = "relu";
  folder.ExpectRefusal({"activation_function", "relu", "gelu_new"});
  folder.config["activation_function"] = "gelu_new";
  folder.config["scale_attn_by_inverse_layer_idx"] = true;
  folder.ExpectRefusal({"scale_attn_by_inverse_layer_idx"});
  folder.config.erase("scale_attn_by_inverse_layer_idx");
  folder.config["scale_attn_weights"] = false;
  folder.ExpectRefusal({"scale_attn_weights"});
  folder.config["scale_attn_weights"] = true;
  folder.config["n_embd"] = -2147483647;
  folder.ExpectRefusal({"hidden size is -2147483647"});
}

TEST(FindModelTest, NamesWhatIsNotThere) {
  TempDir dir;
  SerialExecutor executor;
  const std::string path = dir.path() + "/none";
  const auto model = OpenModel(path, kLimits, &executor);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr(path));
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("GGUF"));
  const auto empty = OpenModel(dir.path(), kLimits, &executor);
  EXPECT_THAT(std::string(empty.status().message()), HasSubstr("config.json"));
}

TEST(FindModelTest, EmptyIsTheEmbeddedModel) {
  SerialExecutor executor;
  const auto model = OpenModel("", kLimits, &executor);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().name, kEmbeddedModelName);
  EXPECT_EQ((*model)->info().architecture, "LlamaForCausalLM");
}

TEST(RandomModelTest, KeysHaveDefaults) {
  SerialExecutor executor;
  const auto model = OpenModel("random:", kLimits, &executor);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().vocab_size, 128);
  EXPECT_EQ((*model)->info().context_length, 4096);
}

// Parameters counted by hand: the embedding, which is the head too, and for
// each layer q, k, v, out, gate, up, down and two norms; one norm at the end.
TEST(RandomModelTest, PresetsHaveTheSizesOfTheirNames) {
  const auto parameters = [](const std::string& items) {
    const ModelSource source = RandomSource(items);
    return NumParameters(ExpectedTensors(source.config, source.names));
  };
  constexpr int64_t kSmallLayer =
      576 * (576 + 2 * 192) + 576 * 576 + 3 * 576 * 1536 + 2 * 576;
  constexpr int64_t kSmall = 50257 * 576 + 30 * kSmallLayer + 576;
  EXPECT_EQ(parameters("llama-135m"), kSmall);
  EXPECT_EQ(kSmall, 135'151'488);
  constexpr int64_t kLargeLayer =
      2048 * (2048 + 2 * 512) + 2048 * 2048 + 3 * 2048 * 8192 + 2 * 2048;
  EXPECT_EQ(parameters("llama-1b"), 32000 * 2048 + 16 * kLargeLayer + 2048);
  // Other keys change a preset.
  EXPECT_EQ(parameters("llama-135m,layers=2,seed=3"),
            kSmall - 28 * kSmallLayer);
  EXPECT_EQ(parameters("llama-135m,tied=0"), kSmall + 50257 * 576);
}

TEST(RandomModelTest, RefusesBadSpecs) {
  SerialExecutor executor;
  const std::pair<const char*, const char*> kCases[] = {
      {"random:vocab", "vocab is \"\""},
      {"random:vocab=x", "vocab is \"x\""},
      {"random:colour=3", "\"colour\" is not one of arch, vocab"},
      {"random:heads=5", "number of heads, 5, does not divide"},
      {"random:hidden=-64", "hidden size is -64"},
      {"random:arch=mamba", "mamba is not supported; supported: tiny, llama"},
      {"random:arch=llama,window=0", "sliding window is 0"},
      {"random:tied=2", "tied is \"2\"; expected 0 or 1"},
      {"random:layers=2,llama-135m", "\"llama-135m\" is not one of"},
      {"random:vocab=4000000,hidden=32768,heads=32", "parameters; at most"},
  };
  for (const auto& [spec, message] : kCases) {
    const auto model = OpenModel(spec, kLimits, &executor);
    ASSERT_FALSE(model.ok()) << spec;
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(model.status().message()), HasSubstr(message));
  }
}

TEST(ChooseTypesTest, AutoKeepsWhatTheFilesHave) {
  const ModelSource f32 = RandomSource("");
  EXPECT_EQ(ChooseTypes(f32, {}).weights, ElementType::kF32);
  EXPECT_EQ(ChooseTypes(f32, {}).kv, ElementType::kF32);
  EXPECT_THAT(ExplainTypes(f32, {}), HasSubstr("weights in f32 (auto"));
  EXPECT_EQ(ChooseTypes(f32, {.weights = ElementType::kBf16}).kv,
            ElementType::kBf16);
  EXPECT_EQ(ChooseTypes(f32, {.kv = ElementType::kBf16}).weights,
            ElementType::kF32);
  const auto location = FindModel("");
  ASSERT_TRUE(location.ok());
  const auto bf16 = OpenModelSource(*location);
  ASSERT_TRUE(bf16.ok()) << bf16.status();
  EXPECT_EQ(ChooseTypes(*bf16, {}).weights, ElementType::kBf16);
}

}  // namespace
}  // namespace folio
