#include "runtime/weights/gguf_tensors.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/shown.h"

namespace folio {
namespace {

// The format's limit.
constexpr uint32_t kMaxDimensions = 4;
// The fewest bytes that describe a tensor: the length of its name, the number
// of dimensions, one dimension, type, offset.
constexpr uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;

struct TypeRow {
  uint32_t number;
  std::string_view name;
  std::optional<DType> dtype;  // Nothing when Folio does not read it.
};

// Every type that files have had. The numbers are ggml's.
constexpr TypeRow kTypes[] = {
    {0, "F32", DType::kF32},          {1, "F16", DType::kF16},
    {2, "Q4_0", DType::kQ4_0},        {3, "Q4_1", DType::kQ4_1},
    {4, "Q4_2", std::nullopt},        {5, "Q4_3", std::nullopt},
    {6, "Q5_0", DType::kQ5_0},        {7, "Q5_1", DType::kQ5_1},
    {8, "Q8_0", DType::kQ8_0},        {9, "Q8_1", std::nullopt},
    {10, "Q2_K", DType::kQ2_K},       {11, "Q3_K", DType::kQ3_K},
    {12, "Q4_K", DType::kQ4_K},       {13, "Q5_K", DType::kQ5_K},
    {14, "Q6_K", DType::kQ6_K},       {15, "Q8_K", std::nullopt},
    {16, "IQ2_XXS", std::nullopt},    {17, "IQ2_XS", std::nullopt},
    {18, "IQ3_XXS", std::nullopt},    {19, "IQ1_S", std::nullopt},
    {20, "IQ4_NL", std::nullopt},     {21, "IQ3_S", std::nullopt},
    {22, "IQ2_S", std::nullopt},      {23, "IQ4_XS", std::nullopt},
    {24, "I8", std::nullopt},         {25, "I16", std::nullopt},
    {26, "I32", std::nullopt},        {27, "I64", std::nullopt},
    {28, "F64", std::nullopt},        {29, "IQ1_M", std::nullopt},
    {30, "BF16", DType::kBF16},       {31, "Q4_0_4_4", std::nullopt},
    {32, "Q4_0_4_8", std::nullopt},   {33, "Q4_0_8_8", std::nullopt},
    {34, "TQ1_0", std::nullopt},      {35, "TQ2_0", std::nullopt},
    {36, "IQ4_NL_4_4", std::nullopt}, {37, "IQ4_NL_4_8", std::nullopt},
    {38, "IQ4_NL_8_8", std::nullopt}, {39, "MXFP4", std::nullopt},
    {40, "NVFP4", std::nullopt},      {41, "Q1_0", std::nullopt},
};

// What the file says about one tensor.
struct Entry {
  std::string_view name;
  std::vector<uint64_t> dimensions;  // Innermost first.
  const TypeRow* type;
  uint64_t offset;     // Into the data.
  uint64_t num_bytes;  // 0 when the type is not read.
};

// The type of the number; null when there is none.
const TypeRow* FindType(uint32_t number) {
  const auto* type = std::ranges::find(kTypes, number, &TypeRow::number);
  return type == std::end(kTypes) ? nullptr : type;
}

std::string InTensor(const GgufReader& reader, std::string_view name) {
  return absl::StrCat(reader.InFile(), "tensor ", Shown(name), ": ");
}

std::string ShapeOf(const Entry& entry) {
  return absl::StrCat("[", absl::StrJoin(entry.dimensions, ", "), "]");
}

// Sets num_bytes, after checking that the shape goes with the type.
absl::Status MeasureEntry(const GgufReader& reader, Entry& entry) {
  int64_t elements = 1;
  bool fits = true;
  for (const uint64_t dimension : entry.dimensions) {
    if (dimension == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(InTensor(reader, entry.name), "the shape is ",
                       ShapeOf(entry), "; expected dimensions of at least 1"));
    }
    fits = fits && !__builtin_mul_overflow(elements, dimension, &elements);
  }
  // The unread types count too: their shapes have to make sense all the same.
  int64_t bytes = 0;
  const DTypeInfo info = entry.type->dtype.has_value()
                             ? InfoOf(*entry.type->dtype)
                             : DTypeInfo{entry.type->name, 1, 1};
  fits = fits &&
         !__builtin_mul_overflow(elements, int64_t{info.block_bytes}, &bytes);
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat(InTensor(reader, entry.name), "the shape is ",
                     ShapeOf(entry), ", which takes more than 2^63 bytes"));
  }
  if (entry.dimensions[0] % info.block_elements != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        InTensor(reader, entry.name), "a row has ", entry.dimensions[0],
        " elements; ", std::string(info.name), " stores blocks of ",
        info.block_elements, ", and a row consists of whole blocks"));
  }
  if (entry.type->dtype.has_value()) {
    entry.num_bytes = bytes / info.block_elements;
  }
  return absl::OkStatus();
}

absl::StatusOr<Entry> ReadEntry(GgufReader& reader, uint64_t index) {
  Entry entry = {};
  if (!reader.ReadString(entry.name)) {
    return reader.Truncated(absl::StrCat("the name of tensor ", index));
  }
  const auto truncated = [&](std::string_view what) {
    return reader.Truncated(absl::StrCat("tensor ", Shown(entry.name), ": its ",
                                         std::string(what)));
  };
  uint32_t num_dimensions = 0;
  if (!reader.Read(num_dimensions)) return truncated("number of dimensions");
  if (num_dimensions < 1 || num_dimensions > kMaxDimensions) {
    return absl::InvalidArgumentError(
        absl::StrCat(InTensor(reader, entry.name), "it has ", num_dimensions,
                     " dimensions; expected 1 to ", kMaxDimensions));
  }
  entry.dimensions.resize(num_dimensions);
  for (uint64_t& dimension : entry.dimensions) {
    if (!reader.Read(dimension)) return truncated("dimensions");
  }
  uint32_t type = 0;
  if (!reader.Read(type)) return truncated("type");
  entry.type = FindType(type);
  if (entry.type == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(InTensor(reader, entry.name), "the type is ", type,
                     "; known are 0 to ", std::rbegin(kTypes)->number));
  }
  if (!reader.Read(entry.offset)) return truncated("offset");
  FOLIO_RETURN_IF_ERROR(MeasureEntry(reader, entry));
  return entry;
}

absl::Status CheckExtent(const GgufReader& reader, const Entry& entry,
                         uint64_t data_bytes, uint32_t alignment) {
  if (entry.offset % alignment != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(InTensor(reader, entry.name), "its offset is ",
                     entry.offset, "; expected a multiple of ", alignment));
  }
  if (entry.offset > data_bytes ||
      entry.num_bytes > data_bytes - entry.offset) {
    return absl::InvalidArgumentError(absl::StrCat(
        InTensor(reader, entry.name), "it takes ", entry.num_bytes,
        " bytes at offset ", entry.offset, ", but the file has ", data_bytes,
        " bytes of data; it may have been cut short: download it again"));
  }
  return absl::OkStatus();
}

// Sorts `entries` by place.
absl::Status CheckOverlap(const GgufReader& reader,
                          std::vector<Entry>& entries) {
  std::ranges::sort(entries, {}, [](const Entry& entry) {
    return std::tie(entry.offset, entry.num_bytes, entry.name);
  });
  for (size_t i = 1; i < entries.size(); ++i) {
    const Entry& before = entries[i - 1];
    if (entries[i].offset - before.offset < before.num_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          InTensor(reader, entries[i].name), "it begins at offset ",
          entries[i].offset, ", inside the tensor ", Shown(before.name),
          ", which ends at ", before.offset + before.num_bytes));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Entry>> ReadEntries(GgufReader& reader,
                                               uint64_t count) {
  if (count > reader.remaining() / kMinTensorBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        reader.InFile(), "it claims ", count,
        " tensors, described by at least ", kMinTensorBytes,
        " bytes each, but the file has only ", reader.remaining(),
        " after its metadata; it may have been cut short: download it again"));
  }
  std::vector<Entry> entries;
  std::set<std::string_view> names;
  for (uint64_t i = 0; i < count; ++i) {
    FOLIO_ASSIGN_OR_RETURN(Entry entry, ReadEntry(reader, i));
    if (!names.insert(entry.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(InTensor(reader, entry.name), "it is there twice"));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

absl::StatusOr<TensorTable> ReadGgufTensors(GgufReader& reader, uint64_t count,
                                            uint32_t alignment) {
  if (count == 0) return TensorTable();
  FOLIO_ASSIGN_OR_RETURN(std::vector<Entry> entries,
                         ReadEntries(reader, count));
  const std::span<const std::byte> file = reader.file()->bytes();
  const uint64_t data_begin = std::min<uint64_t>(
      (reader.offset() + alignment - 1) / alignment * alignment, file.size());
  const std::span<const std::byte> data = file.subspan(data_begin);
  for (const Entry& entry : entries) {
    FOLIO_RETURN_IF_ERROR(CheckExtent(reader, entry, data.size(), alignment));
  }
  FOLIO_RETURN_IF_ERROR(CheckOverlap(reader, entries));

  TensorTable table;
  for (const Entry& entry : entries) {
    const std::string name(entry.name);
    if (entry.type->dtype.has_value()) {
      table.tensors[name] = {
          *entry.type->dtype,
          {entry.dimensions.rbegin(), entry.dimensions.rend()},
          data.subspan(entry.offset, entry.num_bytes),
          reader.file()};
    } else {
      table.unreadable[name] = entry.type->name;
    }
  }
  return table;
}

uint32_t GgufNumberOf(DType dtype) {
  return std::ranges::find(kTypes, std::optional(dtype), &TypeRow::dtype)
      ->number;
}

}  // namespace folio
