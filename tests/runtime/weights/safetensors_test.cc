#include "runtime/weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "runtime/weights/to_float.h"
#include "tests/support/bytes.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string LittleEndian(uint64_t number) { return BytesOf(number); }

class SafetensorsTest : public ::testing::Test {
 protected:
  // The result views the last `contents` read.
  absl::StatusOr<TensorTable> Read(std::string_view contents) {
    // Memory of exactly this size, so that AddressSanitizer sees a read past
    // it.
    contents_.assign(contents.begin(), contents.end());
    contents_.shrink_to_fit();
    return ReadSafetensors(
        MappedFile::OfMemory(path_, std::as_bytes(std::span(contents_))));
  }

  // The message with which `contents` is refused; empty when it is not.
  std::string Refusal(std::string_view contents) {
    const auto file = Read(contents);
    if (file.ok()) return "";
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(file.status().message());
  }

  const std::string path_ = "some/model.safetensors";
  std::vector<char> contents_;
};

TEST_F(SafetensorsTest, ReadsTensorsOfEveryDType) {
  const auto file = Read(SafetensorsOf(
      R"({"__metadata__": {"format": "pt"},
          "b": {"dtype": "BF16", "shape": [2], "data_offsets": [8, 12]},
          "a": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
          "h": {"dtype": "F16", "shape": [], "data_offsets": [12, 14]},
          "none": {"dtype": "F32", "shape": [0, 7], "data_offsets": [8, 8]},
          "mask": {"dtype": "BOOL", "shape": [3], "data_offsets": [14, 17]}}  )",
      std::string_view("\x00\x00\x80\x3F\x00\x00\x00\xC0"  // 1, -2
                       "\x80\x3F\x40\x40"                  // 1, 3
                       "\x00\x38"                          // 0.5
                       "\x01\x00\x01",
                       17)));
  ASSERT_TRUE(file.ok()) << file.status();
  const auto& tensors = file->tensors;
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors.at("a").dtype, DType::kF32);
  EXPECT_THAT(tensors.at("a").shape, ElementsAre(1, 2));
  EXPECT_THAT(ToFloat(tensors.at("a")), ElementsAre(1.0f, -2.0f));
  EXPECT_EQ(tensors.at("b").dtype, DType::kBF16);
  EXPECT_THAT(ToFloat(tensors.at("b")), ElementsAre(1.0f, 3.0f));
  EXPECT_EQ(tensors.at("h").dtype, DType::kF16);
  EXPECT_THAT(tensors.at("h").shape, ElementsAre());
  EXPECT_THAT(ToFloat(tensors.at("h")), ElementsAre(0.5f));
  EXPECT_THAT(tensors.at("none").shape, ElementsAre(0, 7));
  EXPECT_TRUE(tensors.at("none").bytes.empty());
  EXPECT_THAT(file->unreadable, ElementsAre(Pair("mask", "BOOL")));
}

TEST_F(SafetensorsTest, CanHoldNothing) {
  const auto file = Read(SafetensorsOf("{}", ""));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->tensors.empty());
}

TEST_F(SafetensorsTest, NamesFileTensorFoundAndExpected) {
  // Each header comes with 16 bytes of data.
  const struct {
    const char* header;
    std::vector<const char*> says;
  } kCases[] = {
      // The header itself.
      {R"([1])", {"header is [1]", "expected an object"}},
      {R"(7)", {"header is 7"}},
      {R"({"t": )", {"header: ", "byte"}},
      {R"({"t": 1, "t": 2})", {"header: ", "\"t\" twice"}},
      {R"({"t": {"dtype": "F32", "dtype": "F16"}})", {"\"dtype\" twice"}},
      {R"({"__metadata__": {"a": 1}})", {"__metadata__ is {\"a\":1}"}},
      {R"({"__metadata__": "a"})", {"__metadata__ is \"a\""}},
      {R"({})", {"tensors end at offset 0", "holds 16 bytes"}},
      // Fields.
      {R"({"t": 3})", {"'t'", "found 3"}},
      {R"({"t": {"shape": [4], "data_offsets": [0, 16]}})",
       {"'t'", "no dtype"}},
      {R"({"t": {"dtype": "F32", "data_offsets": [0, 16]}})", {"no shape"}},
      {R"({"t": {"dtype": "F32", "shape": [4]}})", {"no data_offsets"}},
      // dtype.
      {R"({"t": {"dtype": "F31", "shape": [4], "data_offsets": [0, 16]}})",
       {"'t'", "dtype is \"F31\"", "F32, F16, BF16"}},
      {R"({"t": {"dtype": "f32", "shape": [4], "data_offsets": [0, 16]}})",
       {"dtype is \"f32\""}},
      {R"({"t": {"dtype": 32, "shape": [4], "data_offsets": [0, 16]}})",
       {"dtype is 32"}},
      // shape.
      {R"({"t": {"dtype": "F32", "shape": 4, "data_offsets": [0, 16]}})",
       {"'t'", "shape is 4", "non-negative integers"}},
      {R"({"t": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}})",
       {"shape is [-4]"}},
      {R"({"t": {"dtype": "F32", "shape": [-2, -2], "data_offsets": [0, 16]}})",
       {"shape is [-2,-2]"}},
      {R"({"t": {"dtype": "F32", "shape": [4.0], "data_offsets": [0, 16]}})",
       {"shape is [4.0]"}},
      {R"({"t": {"dtype": "F32", "shape": ["4"], "data_offsets": [0, 16]}})",
       {"shape is [\"4\"]"}},
      {R"({"t": {"dtype": "F32", "shape": [9223372036854775808],
          "data_offsets": [0, 16]}})",
       {"shape is [9223372036854775808]"}},
      {R"({"t": {"dtype": "F32", "shape": [4294967296, 4294967296],
          "data_offsets": [0, 16]}})",
       {"more than 2^63 bytes"}},
      {R"({"t": {"dtype": "F32", "shape": [2305843009213693953],
          "data_offsets": [0, 16]}})",
       {"more than 2^63 bytes"}},
      {R"({"t": {"dtype": "F32", "shape": [4611686018427387905, 4],
          "data_offsets": [0, 16]}})",
       {"more than 2^63 bytes"}},
      // data_offsets.
      {R"({"t": {"dtype": "F32", "shape": [4], "data_offsets": 16}})",
       {"'t'", "data_offsets is 16", "[begin, end]"}},
      {R"({"t": {"dtype": "F32", "shape": [4], "data_offsets": [0]}})",
       {"data_offsets is [0]"}},
      {R"({"t": {"dtype": "F32", "shape": [4], "data_offsets": [0, 8, 16]}})",
       {"data_offsets is [0,8,16]"}},
      {R"({"t": {"dtype": "F32", "shape": [4], "data_offsets": [-16, 0]}})",
       {"data_offsets is [-16,0]"}},
      {R"({"t": {"dtype": "F32", "shape": [4], "data_offsets": [16, 0]}})",
       {"data_offsets is [16,0]", "begin <= end"}},
      {R"({"t": {"dtype": "F32", "shape": [5], "data_offsets": [0, 20]}})",
       {"[0,20] end past the 16 bytes"}},
      {R"({"t": {"dtype": "F32", "shape": [4],
          "data_offsets": [9223372036854775791, 9223372036854775807]}})",
       {"end past the 16 bytes"}},
      {R"({"t": {"dtype": "F32", "shape": [3], "data_offsets": [0, 16]}})",
       {"hold 16 bytes", "shape [3] of F32 takes 12"}},
      {R"({"t": {"dtype": "F16", "shape": [4], "data_offsets": [0, 16]}})",
       {"hold 16 bytes", "shape [4] of F16 takes 8"}},
      {R"({"t": {"dtype": "F32", "shape": [0, 4], "data_offsets": [0, 16]}})",
       {"takes 0"}},
      // The tensors among each other.
      {R"({"s": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
           "t": {"dtype": "F32", "shape": [3], "data_offsets": [4, 16]}})",
       {"'t'", "begins at offset 4, inside the tensor before it; expected 8"}},
      {R"({"s": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
           "t": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})",
       {"'t'", "begins at offset 0, inside"}},
      {R"({"s": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
           "t": {"dtype": "F32", "shape": [0], "data_offsets": [8, 8]}})",
       {"'t'", "begins at offset 8, inside"}},
      {R"({"s": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
           "t": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}})",
       {"'t'", "begins at offset 8, after a hole; expected 4"}},
      {R"({"t": {"dtype": "F32", "shape": [3], "data_offsets": [4, 16]}})",
       {"'t'", "begins at offset 4, after a hole; expected 0"}},
      {R"({"t": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}})",
       {"tensors end at offset 12", "holds 16 bytes"}},
  };
  for (const auto& [header, says] : kCases) {
    SCOPED_TRACE(header);
    const std::string message =
        Refusal(SafetensorsOf(header, std::string(16, 'd')));
    EXPECT_THAT(message, HasSubstr(path_));
    for (const char* part : says) EXPECT_THAT(message, HasSubstr(part));
  }
}

TEST_F(SafetensorsTest, JudgesTheHeadersLength) {
  EXPECT_THAT(Refusal(""), HasSubstr("has 0 bytes"));
  EXPECT_THAT(Refusal("1234567"), HasSubstr("has 7 bytes"));
  EXPECT_THAT(Refusal(LittleEndian(0)), HasSubstr("header: "));
  EXPECT_THAT(Refusal(LittleEndian(3) + "{}"),
              AllOf(HasSubstr("claims 3 bytes"), HasSubstr("has 2 after")));
  for (const uint64_t length :
       {~uint64_t{0}, ~uint64_t{0} - 7, uint64_t{1} << 63, uint64_t{1} << 40}) {
    EXPECT_THAT(Refusal(LittleEndian(length) + "{}"),
                HasSubstr("claims " + std::to_string(length)));
  }
}

TEST_F(SafetensorsTest, RefusesAHeaderBeyondTheFormatsLimit) {
  const TempDir dir;
  const std::string path = dir.Write("large", LittleEndian(100'000'001));
  std::filesystem::resize_file(path, 200'000'000);  // A hole.
  const auto file = *MappedFile::Open(path);
  EXPECT_THAT(std::string(ReadSafetensors(file).status().message()),
              HasSubstr("the format allows 100000000"));
}

TEST_F(SafetensorsTest, RefusesDeepNesting) {
  EXPECT_THAT(
      Refusal(SafetensorsOf(R"({"t": )" + std::string(1'000'000, '['), "")),
      HasSubstr("levels deep"));
}

std::string SmallFile() {
  return SafetensorsOf(
      R"({"__metadata__": {"made by": "hand"},
          "wte": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]},
          "ln": {"dtype": "F32", "shape": [2], "data_offsets": [12, 20]}})",
      std::string(20, '\x3C'));
}

TEST_F(SafetensorsTest, RefusesAFileCutAtAnyByte) {
  const std::string whole = SmallFile();
  ASSERT_TRUE(Read(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(Refusal(whole.substr(0, size)), HasSubstr(path_)) << size;
  }
  EXPECT_THAT(Refusal(whole + "x"), HasSubstr("holds 21 bytes"));
}

// Damage either is refused or leaves views that lie inside the file; the
// sanitizers see to the rest.
TEST_F(SafetensorsTest, SurvivesDamage) {
  const std::string whole = SmallFile();
  int num_accepted = 0;
  for (int seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::string damaged = whole;
    for (uint64_t i = random() % 3 + 1; i > 0; --i) {
      static constexpr std::string_view kBytes = "0123456789[]{}\",: -\x80\xFF";
      damaged[random() % damaged.size()] =
          random() % 2 != 0 ? static_cast<char>(random())
                            : kBytes[random() % kBytes.size()];
    }
    const auto file = Read(damaged);
    if (!file.ok()) continue;
    ++num_accepted;
    for (const auto& [name, tensor] : file->tensors) {
      int64_t num_elements = 1;
      for (const int64_t dimension : tensor.shape) num_elements *= dimension;
      ASSERT_EQ(static_cast<int64_t>(ToFloat(tensor).size()), num_elements);
    }
  }
  // Damage to the data alone is no damage to the format.
  EXPECT_GT(num_accepted, 0);
  EXPECT_LT(num_accepted, 1000);
}

TEST_F(SafetensorsTest, TensorsOwnAShareOfTheFile) {
  const TempDir dir;
  auto file = *MappedFile::Open(dir.Write("small", SmallFile()));
  const std::weak_ptr<const MappedFile> watch = file;
  TensorView view;
  {
    const auto table = ReadSafetensors(std::move(file));
    ASSERT_TRUE(table.ok()) << table.status();
    view = table->tensors.at("ln");
  }
  EXPECT_EQ(view.file->path(), dir.path() + "/small");
  EXPECT_EQ(ToFloat(view).size(), 2u);
  view = TensorView();
  EXPECT_TRUE(watch.expired());
}

TEST(SafetensorsReference, ReadsEveryReferenceModel) {
  const std::filesystem::path folder =
      std::filesystem::path(FOLIO_SHARED_DIR) / "reference";
  if (!std::filesystem::is_directory(folder)) {
    GTEST_SKIP() << "there is no reference data in " << folder;
  }
  int num_models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path() / "model.safetensors";
    if (!std::filesystem::exists(path)) continue;
    ++num_models;
    const auto file = ReadSafetensors(*MappedFile::Open(path));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_FALSE(file->tensors.empty()) << path;
  }
  EXPECT_GT(num_models, 0);
}

}  // namespace
}  // namespace folio
