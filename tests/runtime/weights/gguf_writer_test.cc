#include "runtime/weights/gguf_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "runtime/weights/gguf.h"
#include "runtime/weights/mapped_file.h"
#include "runtime/weights/to_float.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/random_floats.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The builder that the reader is tested with was written from the format's
// description on its own.
TEST(GgufWriterTest, WritesWhatTheBuilderBuilds) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  GgufWriter writer;
  writer.Add("general.architecture", std::string_view("llama"));
  writer.Add("llama.block_count", uint32_t{7});
  writer.Add("llama.rope.freq_base", 1e4f);
  writer.AddTensor("a", DType::kF32, {3, 3});
  writer.AddTensor("b", DType::kF32, {2});
  TempDir dir;
  const std::string path = dir.path() + "/m.gguf";
  const absl::Status status = writer.Write(
      path, [&](const std::string& name, int64_t first, std::span<float> out) {
        for (float& value : out) {
          value = name == "a" ? values[first] : static_cast<float>(-first);
          ++first;
        }
      });
  ASSERT_TRUE(status.ok()) << status;
  std::string expected = GgufBuilder()
                             .Add("general.architecture", "llama")
                             .Add("llama.block_count", uint32_t{7})
                             .Add("llama.rope.freq_base", 1e4f)
                             .AddF32("a", {3, 3}, values)
                             .AddF32("b", {2}, {0, -1})
                             .Build();
  // The builder does not fill the last tensor's place up.
  expected.resize((expected.size() + 31) / 32 * 32, '\0');
  EXPECT_EQ(Contents(path), expected);
}

GgufWriter OneTensor(int64_t elements) {
  GgufWriter writer;
  writer.AddTensor("a", DType::kF32, {elements});
  return writer;
}

void Zeros(const std::string&, int64_t, std::span<float> out) {
  std::ranges::fill(out, 0.0f);
}

// A file that is being read is replaced, not cut short under its reader.
TEST(GgufWriterTest, WritesInPlaceOfTheFileThatIsRead) {
  TempDir dir;
  const std::string path = dir.path() + "/m.gguf";
  ASSERT_TRUE(OneTensor(100000).Write(path, Zeros).ok());
  const auto mapped = MappedFile::Open(path);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  const std::vector<std::byte> before((*mapped)->bytes().begin(),
                                      (*mapped)->bytes().end());
  ASSERT_TRUE(OneTensor(8).Write(path, Zeros).ok());
  EXPECT_LT(Contents(path).size(), 1000u);
  EXPECT_TRUE(std::ranges::equal((*mapped)->bytes(), before));
}

TEST(GgufWriterTest, FailingLeavesWhatWasThere) {
  TempDir dir;
  const std::string path = dir.path() + "/m.gguf";
  ASSERT_TRUE(OneTensor(8).Write(path, Zeros).ok());
  const std::string before = Contents(path);
  std::filesystem::create_directory(path + ".partial");
  const absl::Status status = OneTensor(100).Write(path, Zeros);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(path), std::string::npos) << status;
  EXPECT_EQ(Contents(path), before);
}

// Tensors that are written in several pieces, and one row larger than a piece.
TEST(GgufWriterTest, LargeTensorsComeBackInOrder) {
  const std::map<std::string, std::vector<int64_t>> shapes = {
      {"many", {3000, 64}}, {"wide", {2, 70016}}, {"cube", {5, 7, 32}}};
  GgufWriter writer;
  for (const auto& [name, shape] : shapes) {
    writer.AddTensor(name, DType::kQ8_0, shape);
  }
  const auto value = [](int64_t index) {
    return static_cast<float>(index % 255 - 127);
  };
  TempDir dir;
  const std::string path = dir.path() + "/m.gguf";
  ASSERT_TRUE(
      writer
          .Write(path,
                 [&](const std::string&, int64_t first, std::span<float> out) {
                   for (float& v : out) v = value(first++);
                 })
          .ok());
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  for (const auto& [name, shape] : shapes) {
    const TensorView& tensor = (*file)->tensors().tensors.at(name);
    EXPECT_EQ(tensor.shape, shape);
    const std::vector<float> found = ToFloat(tensor);
    for (size_t i = 0; i < found.size(); ++i) {
      // Half a step of the largest possible, 127 / 127, and its rounding.
      ASSERT_NEAR(found[i], value(static_cast<int64_t>(i)), 0.5 + 0x1p-4)
          << name << " " << i;
    }
  }
}

}  // namespace
}  // namespace folio
