#include "runtime/model/model_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/model/embedded_model.h"
#include "runtime/model/tiny_causal_lm.h"
#include "tests/runtime/model/step_runner.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr ModelLimits kLimits{.max_batch_tokens = 8, .max_logits_rows = 8};

class ModelRegistryTest : public testing::Test {
 protected:
  ModelRegistryTest() {
    config_ = {{"architectures", {"TinyCausalLM"}},
               {"vocab_size", 20},
               {"hidden_size", 8},
               {"num_heads", 2},
               {"num_layers", 1}};
    TinyCausalLmConfig config{20, 8, 2, 1, 4096, {}, {}};
    TinyCausalLmWeights weights = RandomTinyCausalLmWeights(config, 5);
    ForEachTensor(
        config, weights,
        [&](const std::string& name, const std::vector<int64_t>& shape,
            std::vector<float>& values) {
          AddTensor(name, "F32", shape, values);
        });
  }

  void AddTensor(const std::string& name, const std::string& dtype,
                 const std::vector<int64_t>& shape,
                 std::span<const float> values) {
    const size_t begin = data_.size();
    data_.append(reinterpret_cast<const char*>(values.data()),
                 values.size_bytes());
    header_[name] = {{"dtype", dtype},
                     {"shape", shape},
                     {"data_offsets", {begin, data_.size()}}};
  }

  // Writes the folder and opens it.
  absl::StatusOr<std::unique_ptr<Model>> Open() {
    dir_.Write("m/config.json", config_.dump());
    const std::string header = header_.dump();
    const uint64_t size = header.size();
    std::string file(sizeof(size), '\0');
    std::memcpy(file.data(), &size, sizeof(size));
    dir_.Write("m/model.safetensors", file + header + data_);
    return OpenModel(dir_.path() + "/m", kLimits, &executor_);
  }

  void ExpectRefusal(const std::vector<std::string>& parts) {
    const auto model = Open();
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(model.status().message()), HasSubstr(part));
    }
  }

  TempDir dir_;
  json config_;
  json header_;
  std::string data_;
  SerialExecutor executor_;
};

TEST_F(ModelRegistryTest, OpensAFolderWithItsWeights) {
  config_["eos_token_id"] = {3, 4};
  config_["bos_token_id"] = 1;
  config_["context_length"] = 100;
  const auto model = Open();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().name, "m");
  EXPECT_EQ((*model)->info().context_length, 100);
  EXPECT_EQ((*model)->info().bos_token, 1);
  EXPECT_THAT((*model)->info().eos_tokens, testing::ElementsAre(3, 4));
  const auto same =
      OpenModel("random:vocab=20,hidden=8,heads=2,layers=1,context=100,seed=5",
                kLimits, &executor_);
  ASSERT_TRUE(same.ok()) << same.status();
  const TokenId tokens[] = {1, 2, 3};
  StepRunner a(**model, 8, 1, 3);
  StepRunner b(**same, 8, 1, 3);
  a.Add(0, tokens);
  b.Add(0, tokens);
  EXPECT_EQ(a.Run(), b.Run());
}

TEST_F(ModelRegistryTest, EosMayBeANumberOrNull) {
  config_["eos_token_id"] = 7;
  config_["bos_token_id"] = nullptr;
  const auto model = Open();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT((*model)->info().eos_tokens, testing::ElementsAre(7));
  EXPECT_FALSE((*model)->info().bos_token.has_value());
}

TEST_F(ModelRegistryTest, RefusesUnknownArchitectures) {
  config_["architectures"] = {"MambaForCausalLM"};
  ExpectRefusal({"config.json", "MambaForCausalLM", "TinyCausalLM"});
}

TEST_F(ModelRegistryTest, RefusesMissingArchitectures) {
  for (const json& wrong : {json(), json(3), json::array(), json({1}),
                            json({"TinyCausalLM", "Other"})}) {
    config_["architectures"] = wrong;
    ExpectRefusal({"architectures", "TinyCausalLM"});
  }
  config_ = json::array();
  ExpectRefusal({"architectures"});
}

TEST_F(ModelRegistryTest, RefusesBadNumbers) {
  const json good = config_;
  const struct {
    const char* key;
    json value;
    const char* message;
  } kCases[] = {
      {"vocab_size", 0, "vocab_size is 0"},
      {"vocab_size", -5, "vocab_size is -5"},
      {"vocab_size", "20", "vocab_size is \"20\""},
      {"vocab_size", 20.5, "vocab_size is 20.5"},
      {"vocab_size", 18446744073709551615u, "18446744073709551615"},
      {"hidden_size", 1 << 30, "hidden_size is 1073741824"},
      {"hidden_size", nullptr, "hidden_size is missing"},
      {"num_heads", 3, "num_heads, 3, does not divide"},
      {"num_layers", 1000000, "num_layers is 1000000"},
      {"context_length", 0, "context_length is 0"},
      {"eos_token_id", 20, "eos_token_id is 20"},
      {"eos_token_id", {1, "x"}, "eos_token_id is \"x\""},
      {"bos_token_id", -1, "bos_token_id is -1"},
  };
  for (const auto& c : kCases) {
    config_ = good;
    config_[c.key] = c.value;
    ExpectRefusal({"config.json", c.message});
  }
}

TEST_F(ModelRegistryTest, RefusesTensorsThatAreNotTheModels) {
  const json good = header_;
  config_["hidden_size"] = 16;
  ExpectRefusal(
      {"model.safetensors", "token_emb.weight", "[20, 8]", "[20, 16]"});
  config_["hidden_size"] = 8;
  config_["num_layers"] = 2;
  ExpectRefusal({"blocks.1.attn_norm.weight", "missing", "[8]"});
  config_["num_layers"] = 1;
  header_["norm.bias"]["dtype"] = "I32";
  ExpectRefusal({"norm.bias", "I32", "F32"});
  header_ = good;
  AddTensor("extra.weight", "F32", {1}, std::vector<float>{1});
  ExpectRefusal({"extra.weight", "is not one of the 16"});
}

// A config.json that promises a huge model costs nothing: the file is compared
// first.
TEST_F(ModelRegistryTest, AllocatesNothingThatTheFileDoesNotHold) {
  config_["vocab_size"] = 1 << 22;
  config_["hidden_size"] = 1 << 16;
  config_["num_layers"] = 1024;
  ExpectRefusal({"token_emb.weight", "[4194304, 65536]"});
}

TEST_F(ModelRegistryTest, NamesWhatIsNotThere) {
  const auto model = OpenModel(dir_.path() + "/none", kLimits, &executor_);
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("config.json"));
}

TEST_F(ModelRegistryTest, EmptyIsTheEmbeddedModel) {
  const auto model = OpenModel("", kLimits, &executor_);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().name, kEmbeddedModelName);
}

TEST_F(ModelRegistryTest, RandomKeysHaveDefaults) {
  const auto model = OpenModel("random:", kLimits, &executor_);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().vocab_size, 128);
  EXPECT_EQ((*model)->info().context_length, 4096);
}

TEST_F(ModelRegistryTest, RefusesBadRandomSpecs) {
  const std::pair<const char*, const char*> kCases[] = {
      {"random:vocab", "vocab is \"\""},
      {"random:vocab=x", "vocab is \"x\""},
      {"random:colour=3", "\"colour=3\" is not one of vocab"},
      {"random:heads=5", "num_heads, 5, does not divide"},
      {"random:hidden=-64", "hidden_size is -64"},
      {"random:vocab=4000000,hidden=65536", "parameters; at most"},
  };
  for (const auto& [spec, message] : kCases) {
    const auto model = OpenModel(spec, kLimits, &executor_);
    ASSERT_FALSE(model.ok()) << spec;
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(model.status().message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace folio
