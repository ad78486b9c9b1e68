#include "runtime/weights/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <vector>

#include "runtime/weights/to_float.h"
#include "tests/support/bytes.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/malformed_gguf.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class GgufTest : public ::testing::Test {
 protected:
  // `bytes` live as long as the test.
  std::unique_ptr<GgufFile> Parse(std::string bytes) {
    kept_.push_back(std::make_unique<std::string>(std::move(bytes)));
    auto file = GgufFile::Parse(
        MappedFile::OfMemory("some/model.gguf", AsBytes(*kept_.back())));
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }

  std::vector<std::unique_ptr<std::string>> kept_;
};

TEST_F(GgufTest, GivesEachValueAsWhatItIs) {
  const auto file = Parse(SmallGguf());
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->path(), "some/model.gguf");
  EXPECT_EQ(file->String("general.architecture").value(), "llama");
  EXPECT_EQ(file->Integer("u8").value(), 200);
  EXPECT_EQ(file->Integer("i8").value(), -100);
  EXPECT_EQ(file->Integer("u16").value(), 60'000);
  EXPECT_EQ(file->Integer("i16").value(), -30'000);
  EXPECT_EQ(file->Integer("u32").value(), 4'000'000'000);
  EXPECT_EQ(file->Integer("i32").value(), -2'000'000'000);
  EXPECT_EQ(file->Integer("i64").value(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(file->Number("f32").value(), static_cast<double>(0.1f));
  EXPECT_EQ(file->Number("f64").value(), 0.1);
  EXPECT_EQ(file->Number("i8").value(), -100.0);
  EXPECT_EQ(file->Number("u64").value(), 0x1p63);
  EXPECT_TRUE(file->Bool("yes").value());
  EXPECT_FALSE(file->Bool("no").value());
  EXPECT_THAT(file->Strings("strings").value(),
              ElementsAre("one", "", "thr\xFF"));
  EXPECT_THAT(file->Integers("integers").value(), ElementsAre(1, -2, 3));
  EXPECT_THAT(file->Numbers("integers").value(), ElementsAre(1.0, -2.0, 3.0));
  EXPECT_THAT(file->Numbers("floats").value(), ElementsAre(1.5, -2.0));
  EXPECT_THAT(file->Integers("nothing").value(), IsEmpty());
}

TEST_F(GgufTest, ListsItsKeysInOrder) {
  const auto file =
      Parse(GgufBuilder().Add("b", 1).Add("c", "x").Add("a", true).Build());
  EXPECT_THAT(file->keys(), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(file->Has("b"));
  EXPECT_FALSE(file->Has("d"));
}

TEST_F(GgufTest, NamesKeyFoundAndExpected) {
  const auto file = Parse(SmallGguf());
  const struct {
    absl::Status status;
    const char* key;
    const char* found;
    const char* expected;
  } kCases[] = {
      {file->Integer("f32").status(), "f32", "f32", "an integer type"},
      {file->Integer("yes").status(), "yes", "bool", "an integer type"},
      {file->Integer("integers").status(), "integers", "array of i32",
       "one number"},
      {file->Integer("u64").status(), "u64", "9223372036854775808",
       "at most 9223372036854775807"},
      {file->Number("strings").status(), "strings", "array of string",
       "one number"},
      {file->Number("general.architecture").status(), "general.architecture",
       "string", "a number type"},
      {file->Bool("u8").status(), "u8", "u8", "bool"},
      {file->Bool("bools").status(), "bools", "array of bool", "bool"},
      {file->String("f64").status(), "f64", "f64", "string"},
      {file->String("strings").status(), "strings", "array of string",
       "string"},
      {file->Strings("integers").status(), "integers", "array of i32",
       "array of string"},
      {file->Strings("general.architecture").status(), "general.architecture",
       "string", "array of string"},
      {file->Integers("i8").status(), "i8", "i8", "an array of numbers"},
      {file->Integers("floats").status(), "floats", "array of f32",
       "an integer type"},
      {file->Numbers("bools").status(), "bools", "array of bool",
       "a number type"},
  };
  for (const auto& [status, key, found, expected] : kCases) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr(std::string("'some/model.gguf': key '") + key + "': "),
              HasSubstr(std::string("found ") + found + ";"),
              HasSubstr(std::string("expected ") + expected)));
  }
  for (const absl::Status& status :
       {file->Integer("no.key").status(), file->Number("no.key").status(),
        file->Bool("no.key").status(), file->String("no.key").status(),
        file->Strings("no.key").status(), file->Integers("no.key").status(),
        file->Numbers("no.key").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("'some/model.gguf': key 'no.key'"));
  }
}

TEST_F(GgufTest, GivesTensorsOutermostDimensionFirst) {
  const auto file = Parse(SmallGguf());
  const auto& tensors = file->tensors().tensors;
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_THAT(tensors.at("norm").shape, ElementsAre(3));
  EXPECT_THAT(ToFloat(tensors.at("norm")), ElementsAre(1, 2, 3));
  EXPECT_EQ(tensors.at("bf16").dtype, DType::kBF16);
  EXPECT_THAT(tensors.at("bf16").shape, ElementsAre(2, 1));
  EXPECT_THAT(ToFloat(tensors.at("bf16")), ElementsAre(1, 3));
  EXPECT_EQ(tensors.at("q4_0").dtype, DType::kQ4_0);
  EXPECT_THAT(tensors.at("q4_0").shape, ElementsAre(2, 32));
  EXPECT_EQ(tensors.at("q4_0").bytes.size(), 36u);
  EXPECT_EQ(tensors.at("q6_K").bytes.size(), 210u);
  EXPECT_THAT(file->tensors().unreadable, ElementsAre(Pair("mask", "I8")));
}

TEST_F(GgufTest, TensorsOutliveTheFileObject) {
  TensorView view;
  {
    const auto file = Parse(SmallGguf());
    view = file->tensors().tensors.at("norm");
  }
  EXPECT_EQ(view.file->path(), "some/model.gguf");
  EXPECT_THAT(ToFloat(view), ElementsAre(1, 2, 3));
}

TEST_F(GgufTest, ReadsVersion2AndOtherAlignments) {
  for (const uint32_t version : {2u, 3u}) {
    for (const uint32_t alignment : {8u, 32u, 64u, 4096u}) {
      const auto file = Parse(GgufBuilder(version)
                                  .SetAlignment(alignment)
                                  .AddF32("a", {1}, {7})
                                  .AddF32("b", {2}, {8, 9})
                                  .Build());
      ASSERT_NE(file, nullptr);
      EXPECT_THAT(ToFloat(file->tensors().tensors.at("a")), ElementsAre(7));
      EXPECT_THAT(ToFloat(file->tensors().tensors.at("b")), ElementsAre(8, 9));
    }
  }
}

TEST_F(GgufTest, CanBeAVocabularyOnlyOrEmpty) {
  const auto vocabulary =
      Parse(GgufBuilder().AddArray<std::string>("tokens", {"a", "b"}).Build());
  EXPECT_THAT(vocabulary->tensors().tensors, IsEmpty());
  EXPECT_THAT(vocabulary->Strings("tokens").value(), ElementsAre("a", "b"));
  EXPECT_THAT(Parse(GgufBuilder().Build())->keys(), IsEmpty());
}

TEST_F(GgufTest, OpensFilesByPath) {
  const TempDir dir;
  const auto file = GgufFile::Open(dir.Write("m.gguf", SmallGguf()));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->path(), dir.path() + "/m.gguf");
  EXPECT_EQ(GgufFile::Open(dir.path() + "/none").status().code(),
            absl::StatusCode::kNotFound);
}

// Every reference file opens, and its quantised weights are those of the F16
// file up to what its type rounds away.
TEST(GgufReference, QuantisedWeightsAreNearTheOriginals) {
  const std::filesystem::path folder =
      std::filesystem::path(FOLIO_SHARED_DIR) / "reference" / "gguf";
  if (!std::filesystem::is_directory(folder)) {
    GTEST_SKIP() << "there is no reference data in " << folder;
  }
  const auto original = GgufFile::Open(folder / "llama-f16.gguf");
  ASSERT_TRUE(original.ok()) << original.status();
  int num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    SCOPED_TRACE(entry.path());
    ++num_files;
    const auto file = GgufFile::Open(entry.path());
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_THAT((*file)->tensors().unreadable, IsEmpty());
    const auto& expected = (*original)->tensors().tensors;
    ASSERT_EQ((*file)->tensors().tensors.size(), expected.size());
    for (const auto& [name, tensor] : (*file)->tensors().tensors) {
      const std::vector<float> want = ToFloat(expected.at(name));
      const std::vector<float> got = ToFloat(tensor);
      ASSERT_EQ(got.size(), want.size()) << name;
      double error = 0;
      double norm = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        error += (got[i] - want[i]) * (got[i] - want[i]);
        norm += want[i] * want[i];
      }
      // Two bits round a bell-shaped weight to four levels, which leaves about
      // 30 % of its size as the error. An element in another's place leaves
      // 140 % of both.
      EXPECT_LT(error, norm * 0.35 * 0.35) << name;
    }
  }
  EXPECT_EQ(num_files, 12);
}

}  // namespace
}  // namespace folio
