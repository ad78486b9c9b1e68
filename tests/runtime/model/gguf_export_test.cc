// A model written as a GGUF file is the same model when it is read back.

#include "runtime/model/gguf_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/executor.h"
#include "tests/runtime/model/model_logits.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using testing::HasSubstr;

constexpr ModelLimits kLimits{.max_batch_tokens = 40, .max_logits_rows = 8};
// Rows of whole blocks of 32; a head that is not square.
constexpr char kItems[] =
    "arch=llama,vocab=50,hidden=64,heads=6,kv_heads=2,head_dim=32,ffn=96,"
    "context=64";

ModelSource Open(const std::string& spec) {
  return *OpenModelSource(*FindModel(spec));
}

class GgufExportTest : public testing::Test {
 protected:
  std::string Export(const ModelSource& source, const std::string& type) {
    const std::string path = dir_.path() + "/" + type + ".gguf";
    const absl::Status status =
        ExportGguf(source, *FindGgufExportType(type), path);
    EXPECT_TRUE(status.ok()) << status;
    return path;
  }

  Logits LogitsOf(const ModelSource& source, ElementType type) {
    SerialExecutor executor;
    const auto model =
        LoadModel(source, {.weights = type, .kv = type}, kLimits, &executor);
    return RunAlone(*model, RandomTokens(3, 40, 50), 40, 16);
  }

  TempDir dir_;
};

// Weights that lose nothing, or that the model would round in the same way,
// give the same logits to the bit; also when the file is exported once more.
TEST_F(GgufExportTest, KeepsTheLogits) {
  for (const char* tied : {"0", "1"}) {
    const ModelSource random =
        Open(std::string("random:") + kItems + ",tied=" + tied);
    for (const auto& [name, type] : {std::pair("f32", ElementType::kF32),
                                     std::pair("bf16", ElementType::kBf16)}) {
      const Logits expected = LogitsOf(random, type);
      const ModelSource once = Open(Export(random, name));
      EXPECT_EQ(once.config.tied_head, random.config.tied_head);
      EXPECT_EQ(LogitsOf(once, type), expected) << name;
      const std::string first = Export(random, name);
      const ModelSource again = Open(first);
      const std::string copy = dir_.path() + "/copy.gguf";
      ASSERT_TRUE(ExportGguf(again, *FindGgufExportType(name), copy).ok());
      EXPECT_EQ(LogitsOf(Open(copy), type), expected) << name;
    }
  }
}

// Logits move by as much as the blocks are coarse. One weight of a row is
// uniform, so rounding to 1 / 127 (1 / 8) of the largest of 32 has an error of
// about 1 / (127 * sqrt(12)) / (1 / sqrt(3)) = 0.4% (6%) of its size. All
// products of a row of logits add such errors up independently; ten layers'
// worth of them is a generous bound for a model of two.
TEST_F(GgufExportTest, QuantisedLogitsAreNear) {
  const ModelSource random = Open(std::string("random:") + kItems);
  const Logits expected = LogitsOf(random, ElementType::kF32);
  for (const auto& [name, error] :
       {std::pair("q8_0", 0.004), std::pair("q4_0", 0.06)}) {
    const Logits found =
        LogitsOf(Open(Export(random, name)), ElementType::kF32);
    double squares = 0;
    double differences = 0;
    for (size_t row = 0; row < expected.size(); ++row) {
      for (size_t i = 0; i < expected[row].size(); ++i) {
        squares += std::pow(expected[row][i], 2);
        differences += std::pow(found[row][i] - expected[row][i], 2);
      }
    }
    EXPECT_GT(differences, 0) << name;
    EXPECT_LT(std::sqrt(differences / squares), 10 * error) << name;
  }
}

TEST_F(GgufExportTest, RefusesWhatThePlainLlamaDoesNotHave) {
  const std::pair<std::string, const char*> kCases[] = {
      {"random:", "is a TinyCausalLM"},
      {std::string("random:window=8,") + kItems, "has a sliding window"},
      {"random:arch=llama,hidden=48,heads=6,kv_heads=2,ffn=96",
       "rows of token_embd.weight have 48 elements"}};
  for (const auto& [spec, message] : kCases) {
    const absl::Status status =
        ExportGguf(Open(spec), DType::kQ8_0, dir_.path() + "/m.gguf");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << spec;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  EXPECT_FALSE(FindGgufExportType("q4_K").ok());
}

TEST_F(GgufExportTest, SaysWhereItCannotWrite) {
  const ModelSource random = Open(std::string("random:") + kItems);
  const std::string path = dir_.path() + "/absent/m.gguf";
  const absl::Status status = ExportGguf(random, DType::kF32, path);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

}  // namespace
}  // namespace folio
