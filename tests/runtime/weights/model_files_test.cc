#include "runtime/weights/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/weights/to_float.h"
#include "tests/support/bytes.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

using Contents = std::map<std::string, std::string>;

std::string Shard(const std::vector<std::string>& names) {
  SafetensorsBuilder builder;
  for (const std::string& name : names) builder.AddF32(name, {1}, {1.5f});
  return builder.Build();
}

std::string Index(const std::map<std::string, std::string>& shard_of) {
  const nlohmann::json index = {{"metadata", {{"total_size", 8}}},
                                {"weight_map", shard_of}};
  return index.dump();
}

Contents TwoShards() {
  return {{"model.safetensors.index.json",
           Index({{"a", "one.safetensors"}, {"b", "two.safetensors"}})},
          {"one.safetensors", Shard({"a"})},
          {"two.safetensors", Shard({"b"})}};
}

// The same model in memory and on disk.
class ModelFilesTest : public ::testing::TestWithParam<bool> {
 protected:
  ModelFiles Make(const Contents& contents) {
    contents_ = contents;
    if (GetParam()) {
      for (const auto& [name, bytes] : contents_) dir_.Write(name, bytes);
      return ModelFiles::Folder(dir_.path());
    }
    std::vector<ModelFiles::Embedded> files;
    for (const auto& [name, bytes] : contents_) {
      files.push_back({name, AsBytes(bytes)});
    }
    return ModelFiles::InMemory(dir_.path(), files);
  }

  std::string Path(const std::string& file) const {
    return dir_.path() + "/" + file;
  }

  const TempDir dir_;
  Contents contents_;
};

INSTANTIATE_TEST_SUITE_P(, ModelFilesTest, ::testing::Bool(),
                         [](const auto& test) {
                           return test.param ? "OnDisk" : "InMemory";
                         });

TEST_P(ModelFilesTest, OpensFilesByName) {
  const ModelFiles files =
      Make({{"config.json", "{\"a\": 1}"}, {"bad.json", "{"}});
  EXPECT_EQ(files.path(), dir_.path());
  EXPECT_EQ(files.PathOf("config.json"), Path("config.json"));
  EXPECT_TRUE(files.Has("config.json"));
  EXPECT_FALSE(files.Has("tokenizer.json"));
  const auto file = files.Open("config.json");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->path(), Path("config.json"));
  EXPECT_EQ((*file)->text(), "{\"a\": 1}");
  EXPECT_EQ(files.ReadJson("config.json").value(), nlohmann::json({{"a", 1}}));
  EXPECT_EQ(files.ReadJson("bad.json").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(files.ReadJson("bad.json").status().message()),
              StartsWith("'" + Path("bad.json") + "': byte 2"));
  for (const absl::Status& status :
       {files.Open("none").status(), files.ReadJson("none").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path("none")));
  }
}

TEST_P(ModelFilesTest, ReadsASingleFile) {
  const auto table =
      Make({{"model.safetensors", Shard({"x", "y"})}}).ReadTensors();
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->tensors.size(), 2u);
  EXPECT_THAT(ToFloat(table->tensors.at("x")), ElementsAre(1.5f));
}

TEST_P(ModelFilesTest, PrefersTheSingleFile) {
  Contents contents = TwoShards();
  contents["model.safetensors"] = Shard({"x"});
  const auto table = Make(contents).ReadTensors();
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->tensors.contains("x"));
  EXPECT_EQ(table->tensors.size(), 1u);
}

TEST_P(ModelFilesTest, ReadsAllShards) {
  Contents contents = TwoShards();
  contents["two.safetensors"] = SafetensorsBuilder()
                                    .AddF32("b", {2}, {3, 4})
                                    .Add("mask", "BOOL", {2}, "ab")
                                    .Build();
  contents["model.safetensors.index.json"] =
      Index({{"a", "one.safetensors"},
             {"b", "two.safetensors"},
             {"mask", "two.safetensors"}});
  // The index does not list it, so it is not looked at.
  contents["three.safetensors"] = "no safetensors file";
  const auto table = Make(contents).ReadTensors();
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->tensors.size(), 2u);
  EXPECT_THAT(ToFloat(table->tensors.at("a")), ElementsAre(1.5f));
  EXPECT_EQ(table->tensors.at("a").file->path(), Path("one.safetensors"));
  EXPECT_THAT(ToFloat(table->tensors.at("b")), ElementsAre(3, 4));
  EXPECT_EQ(table->tensors.at("b").file->path(), Path("two.safetensors"));
  EXPECT_THAT(table->unreadable, ElementsAre(Pair("mask", "BOOL")));
}

TEST_P(ModelFilesTest, NamesBothFilesWhenThereIsNeither) {
  const auto table = Make({{"config.json", "{}"}}).ReadTensors();
  EXPECT_EQ(table.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(table.status().message()),
      ::testing::AllOf(HasSubstr(Path("model.safetensors") + "'"),
                       HasSubstr(Path("model.safetensors.index.json"))));
}

struct BadIndex {
  const char* what;
  Contents changes;  // Of TwoShards().
  const char* file;  // That the message names.
  std::vector<const char*> says;
};

std::vector<BadIndex> BadIndexes() {
  constexpr const char* kIndex = "model.safetensors.index.json";
  const auto with_map = [&](const std::string& map) {
    return Contents{{kIndex, "{\"weight_map\": " + map + "}"}};
  };
  return {
      {"no JSON", {{kIndex, "{\"weight_map\": "}}, kIndex, {"byte"}},
      {"an array", {{kIndex, "[1]"}}, kIndex, {"found [1]", "weight_map"}},
      {"no map", {{kIndex, "{\"a\": 1}"}}, kIndex, {"found {\"a\":1}"}},
      {"a map that is none",
       with_map("[\"one.safetensors\"]"),
       kIndex,
       {"found {\"weight_map\":[\"one.safetensors\"]}", "an object"}},
      {"a tensor listed twice",
       with_map("{\"a\": \"one.safetensors\", \"a\": \"two.safetensors\"}"),
       kIndex,
       {"\"a\" twice"}},
      {"a shard that is no string",
       with_map("{\"a\": 1}"),
       kIndex,
       {"tensor 'a': its file is 1", "the name of a file"}},
      {"a shard in the folder above",
       with_map("{\"a\": \"../one.safetensors\"}"),
       kIndex,
       {"tensor 'a': its file is \"../one.safetensors\"", "in this folder"}},
      {"the folder above", with_map("{\"a\": \"..\"}"), kIndex, {"is \"..\""}},
      {"this folder", with_map("{\"a\": \".\"}"), kIndex, {"is \".\""}},
      {"no name", with_map("{\"a\": \"\"}"), kIndex, {"is \"\""}},
      {"an absolute path",
       with_map("{\"a\": \"/one.safetensors\"}"),
       kIndex,
       {"is \"/one.safetensors\""}},
      {"a backslash",
       with_map("{\"a\": \"..\\\\one\"}"),
       kIndex,
       {"is \"..\\\\one\""}},
      {"a name cut short by a zero",
       with_map("{\"a\": \"one.safetensors\\u0000x\"}"),
       kIndex,
       {"is \"one.safetensors\\u0000x\""}},
      {"a malformed shard",
       {{"two.safetensors", "1234"}},
       "two.safetensors",
       {"has 4 bytes"}},
      {"a tensor in two shards",
       {{"two.safetensors", Shard({"a", "b"})}},
       "two.safetensors",
       {"tensor 'a': it is in 'one.safetensors' too", "expected in one"}},
      {"tensors in each other's shard",
       {{"one.safetensors", Shard({"b"})}, {"two.safetensors", Shard({"a"})}},
       kIndex,
       {"tensor 'a': found in 'two.safetensors'",
        "expected in 'one.safetensors'"}},
      {"listed and absent",
       {{"two.safetensors", Shard({})}},
       kIndex,
       {"tensor 'b': expected in 'two.safetensors', which does not have it"}},
      {"present and unlisted",
       {{"two.safetensors", Shard({"b", "c"})}},
       kIndex,
       {"tensor 'c': found in 'two.safetensors'", "does not list it"}},
      {"of an unread type, present and unlisted",
       {{"two.safetensors", SafetensorsBuilder()
                                .AddF32("b", {1}, {1})
                                .Add("mask", "BOOL", {1}, "m")
                                .Build()}},
       kIndex,
       {"tensor 'mask': found in 'two.safetensors'"}},
  };
}

TEST_P(ModelFilesTest, SaysWhereIndexAndShardsDisagree) {
  for (const auto& [what, changes, file, says] : BadIndexes()) {
    SCOPED_TRACE(what);
    Contents contents = TwoShards();
    for (const auto& [name, bytes] : changes) contents[name] = bytes;
    const auto table = Make(contents).ReadTensors();
    EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string message(table.status().message());
    EXPECT_THAT(message, StartsWith("'" + Path(file) + "': "));
    for (const char* part : says) EXPECT_THAT(message, HasSubstr(part));
  }
}

TEST_P(ModelFilesTest, NamesAMissingShard) {
  Contents contents = TwoShards();
  contents.erase("two.safetensors");
  const auto table = Make(contents).ReadTensors();
  EXPECT_EQ(table.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(table.status().message()),
              HasSubstr(Path("two.safetensors")));
}

}  // namespace
}  // namespace folio
