// Models in GGUF files: the same weights as a random model's, under GGUF's
// names and in its order, give the same logits to the bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/model/family.h"
#include "runtime/model/model_registry.h"
#include "runtime/model/random_model.h"
#include "tests/runtime/model/model_logits.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_executors.h"

namespace folio {
namespace {

using testing::HasSubstr;

constexpr ModelLimits kLimits{.max_batch_tokens = 40, .max_logits_rows = 8};

// Rows of each head in the order of GGUF's llama: the two of each rotary pair
// side by side.
std::vector<float> WithPairsAdjacent(const std::vector<float>& rows,
                                     size_t head_dim, size_t in) {
  std::vector<float> result(rows.size());
  for (size_t row = 0; row < rows.size() / in; ++row) {
    const size_t head = row / head_dim * head_dim;
    const size_t i = row % head_dim;
    const size_t stored = i < head_dim / 2 ? 2 * i : 2 * (i - head_dim / 2) + 1;
    std::copy_n(rows.begin() + row * in, in,
                result.begin() + (head + stored) * in);
  }
  return result;
}

std::vector<float> Transposed(const std::vector<float>& matrix, size_t rows) {
  const size_t cols = matrix.size() / rows;
  std::vector<float> result(matrix.size());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) {
      result[c * rows + r] = matrix[r * cols + c];
    }
  }
  return result;
}

// A random model as a GGUF file.
class GgufModel {
 public:
  explicit GgufModel(const std::string& items)
      : random(*ParseRandomModel(items)),
        location_(*FindModel("random:" + items)) {}

  GgufBuilder Metadata() const {
    const DecoderConfig& config = random.config;
    const std::string arch(random.family->short_name);
    GgufBuilder builder;
    const auto add = [&](const std::string& key, int32_t value) {
      builder.Add(arch + "." + key, static_cast<uint32_t>(value));
    };
    builder.Add("general.architecture", arch);
    add("context_length", config.context_length);
    add("embedding_length", config.hidden_size);
    add("block_count", config.num_layers);
    add("feed_forward_length", config.ffn_size);
    add("attention.head_count", config.num_heads);
    add("attention.head_count_kv", config.num_kv_heads);
    if (config.head_dim * config.num_heads != config.hidden_size) {
      add("attention.key_length", config.head_dim);
    }
    builder.Add(arch + (config.norm == NormKind::kRmsNorm
                            ? ".attention.layer_norm_rms_epsilon"
                            : ".attention.layer_norm_epsilon"),
                static_cast<float>(config.norm_epsilon));
    return builder;
  }

  void AddTensors(GgufBuilder& builder) const {
    const ModelSource source = *OpenModelSource(location_);
    const DecoderNames gguf = random.family->gguf_names();
    const auto from = ExpectedTensors(source.config, source.names);
    const auto to = ExpectedTensors(source.config, gguf);
    ASSERT_EQ(from.size(), to.size());
    for (size_t i = 0; i < from.size(); ++i) {
      std::vector<float> values(NumParameters({from[i]}));
      source.weights->Read(from[i].name, 0, values);
      const bool is_matrix = from[i].role == TensorRole::kMatrix;
      if (is_matrix && source.names.transposed) {
        values = Transposed(values, from[i].shape[0]);
      }
      const bool is_q_or_k = to[i].name.find("attn_q.") != std::string::npos ||
                             to[i].name.find("attn_k.") != std::string::npos;
      if (is_q_or_k && gguf.rotary_pairs_adjacent) {
        values = WithPairsAdjacent(values, source.config.head_dim,
                                   is_matrix ? to[i].shape[1] : 1);
      }
      builder.AddF32(to[i].name, to[i].shape, values);
    }
  }

  absl::StatusOr<std::unique_ptr<Model>> Open(const std::string& bytes) {
    dir_.Write("m.gguf", bytes);
    return OpenModel(dir_.path() + "/m.gguf", kLimits, &executor_);
  }

  std::unique_ptr<Model> OpenRandom() {
    return LoadModel(*OpenModelSource(location_), {}, kLimits, &executor_);
  }

  const RandomModel random;

 private:
  const ModelLocation location_;
  TempDir dir_;
  SerialExecutor executor_;
};

class GgufFamilyTest : public testing::TestWithParam<const char*> {};

TEST_P(GgufFamilyTest, HasTheSameLogitsAsFromAFolder) {
  GgufModel gguf(GetParam());
  GgufBuilder builder = gguf.Metadata();
  gguf.AddTensors(builder);
  const auto model = gguf.Open(builder.Build());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().name, "m");
  const std::vector<TokenId> tokens = RandomTokens(3, 40, 50);
  EXPECT_EQ(RunAlone(**model, tokens, 40, 16),
            RunAlone(*gguf.OpenRandom(), tokens, 40, 16));
}

INSTANTIATE_TEST_SUITE_P(
    All, GgufFamilyTest,
    testing::Values("arch=llama,vocab=50,hidden=48,heads=6,kv_heads=2,ffn=70",
                    "arch=qwen2,vocab=50,hidden=48,heads=6,kv_heads=2,ffn=70",
                    "arch=qwen3,vocab=50,hidden=40,heads=4,kv_heads=2,"
                    "head_dim=18,ffn=70",
                    "arch=gpt2,vocab=50,hidden=40,heads=5,context=64"),
    [](const auto& test) {
      const std::string items = test.param;
      return items.substr(5, items.find(',') - 5);
    });

constexpr char kSmallLlama[] =
    "arch=llama,vocab=50,hidden=48,heads=6,kv_heads=2,ffn=70";

TEST(GgufModelTest, RopeFactorsDivideTheFrequencies) {
  GgufModel gguf(kSmallLlama);
  // Factors of 2 everywhere are linear scaling by 2.
  GgufBuilder factors = gguf.Metadata();
  gguf.AddTensors(factors);
  factors.AddF32("rope_freqs.weight", {4}, {2, 2, 2, 2});
  GgufBuilder linear = gguf.Metadata();
  linear.Add("llama.rope.scaling.type", "linear")
      .Add("llama.rope.scaling.factor", 2.0f);
  gguf.AddTensors(linear);
  const auto by_factors = gguf.Open(factors.Build());
  const auto by_scaling = gguf.Open(linear.Build());
  ASSERT_TRUE(by_factors.ok()) << by_factors.status();
  ASSERT_TRUE(by_scaling.ok()) << by_scaling.status();
  const std::vector<TokenId> tokens = RandomTokens(3, 40, 50);
  const Logits logits = RunAlone(**by_factors, tokens, 40, 16);
  EXPECT_EQ(logits, RunAlone(**by_scaling, tokens, 40, 16));
  EXPECT_NE(logits, RunAlone(*gguf.OpenRandom(), tokens, 40, 16));
}

// A head of a type that can't be read must not be taken for a tied one.
TEST(GgufModelTest, NamesTheTypeOfAHeadThatItCannotRead) {
  GgufModel gguf("arch=gpt2,vocab=50,hidden=40,heads=5,context=64");
  GgufBuilder builder = gguf.Metadata();
  gguf.AddTensors(builder);  // GPT-2's head is tied.
  builder.AddRawTensor("output.weight", {40, 50}, /*type=*/24, /*offset=*/0);
  const auto model = gguf.Open(builder.Build());
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(std::string(model.status().message()),
              testing::AllOf(HasSubstr("output.weight"), HasSubstr("I8"),
                             HasSubstr("Q4_K")));
}

TEST(GgufModelTest, AFactorAloneIsLinearScaling) {
  GgufModel gguf(kSmallLlama);
  Logits logits[3];
  const std::pair<const char*, float> kKeys[] = {
      {"llama.rope.freq_base", 10000.0f},  // The default.
      {"llama.rope.scaling.factor", 2.0f},
      {"llama.rope.scale_linear", 2.0f}};
  for (int i = 0; i < 3; ++i) {
    GgufBuilder builder = gguf.Metadata();
    builder.Add(kKeys[i].first, kKeys[i].second);
    gguf.AddTensors(builder);
    const auto model = gguf.Open(builder.Build());
    ASSERT_TRUE(model.ok()) << model.status();
    logits[i] = RunAlone(**model, RandomTokens(3, 40, 50), 40, 16);
  }
  EXPECT_NE(logits[0], logits[1]);
  EXPECT_EQ(logits[1], logits[2]);
}

TEST(GgufModelTest, EosTokensAreThoseOfTheTokenizer) {
  GgufModel gguf(kSmallLlama);
  GgufBuilder builder = gguf.Metadata();
  builder.Add("tokenizer.ggml.bos_token_id", uint32_t{1})
      .Add("tokenizer.ggml.eos_token_id", uint32_t{2})
      .Add("tokenizer.ggml.eot_token_id", uint32_t{7});
  gguf.AddTensors(builder);
  const auto model = gguf.Open(builder.Build());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().bos_token, 1);
  EXPECT_THAT((*model)->info().eos_tokens, testing::ElementsAre(2, 7));
}

TEST(GgufModelTest, RefusesWhatIsNotSupportedByName) {
  GgufModel gguf(kSmallLlama);
  const struct {
    std::function<void(GgufBuilder&)> add;
    std::vector<std::string> parts;
  } kCases[] = {
      {[](GgufBuilder& b) { b.Add("llama.rope.scaling.type", "yarn"); },
       {"llama.rope.scaling.type", "yarn", "linear"}},
      {[](GgufBuilder& b) { b.Add("llama.expert_count", uint32_t{8}); },
       {"llama.expert_count", "8"}},
      {[](GgufBuilder& b) {
         b.Add("llama.attention.value_length", uint32_t{16});
       },
       {"attention.value_length", "16"}},
      {[](GgufBuilder& b) { b.Add("llama.rope.dimension_count", uint32_t{4}); },
       {"rope.dimension_count", "4", "8"}},
      {[](GgufBuilder& b) { b.Add("llama.rope.freq_base", "x"); },
       {"llama.rope.freq_base"}},
      {[](GgufBuilder& b) {
         b.AddF32("blk.0.attn_rel_b.weight", {2}, {1, 2});
       },
       {"blk.0.attn_rel_b.weight", "is not one of"}},
      {[](GgufBuilder& b) {
         b.AddF32("rope_freqs.weight", {2}, {1, 2});
       },
       {"rope_freqs.weight", "[2]", "[4]"}},
      {[](GgufBuilder& b) {
         b.AddF32("rope_freqs.weight", {4}, {1, 2, 0, 1});
       },
       {"rope factor is 0"}},
      // What can't be read is not as if it were not there.
      {[](GgufBuilder& b) { b.AddRawTensor("rope_freqs.weight", {4}, 24, 0); },
       {"rope_freqs.weight", "I8", "F32"}},
      {[](GgufBuilder& b) {
         b.Add("tokenizer.ggml.eos_token_id", uint32_t{50});
       },
       {"EOS token is 50", "0 to 49"}},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.parts[0]);
    GgufBuilder builder = gguf.Metadata();
    gguf.AddTensors(builder);
    c.add(builder);
    const auto model = gguf.Open(builder.Build());
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(model.status().message()), HasSubstr("m.gguf"));
    for (const std::string& part : c.parts) {
      EXPECT_THAT(std::string(model.status().message()), HasSubstr(part));
    }
  }
}

TEST(GgufModelTest, NamesWhatItCannotRun) {
  GgufModel gguf(kSmallLlama);
  const auto other =
      gguf.Open(GgufBuilder().Add("general.architecture", "mamba").Build());
  EXPECT_THAT(std::string(other.status().message()),
              testing::AllOf(HasSubstr("m.gguf"), HasSubstr("mamba"),
                             HasSubstr("llama, qwen2, qwen3, gpt2")));
  const auto vocabulary = gguf.Open(gguf.Metadata().Build());
  EXPECT_THAT(std::string(vocabulary.status().message()),
              testing::AllOf(HasSubstr("m.gguf"), HasSubstr("vocabulary"),
                             HasSubstr("folio tokenize")));
  const auto nothing = gguf.Open(GgufBuilder().Build());
  EXPECT_THAT(std::string(nothing.status().message()),
              HasSubstr("general.architecture"));
}

}  // namespace
}  // namespace folio
