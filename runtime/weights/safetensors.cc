#include "runtime/weights/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/json_file.h"
#include "runtime/weights/shown.h"

namespace folio {
namespace {

using nlohmann::json;

constexpr int64_t kLengthBytes = 8;
// The format's own limit.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::string_view kMetadata = "__metadata__";

// Every dtype of the format that takes whole bytes.
struct DTypeRow {
  std::string_view name;
  int64_t bytes;
  std::optional<DType> dtype;  // Nothing when Folio does not compute with it.
};

constexpr std::array<DTypeRow, 15> kDTypes = {{
    {"F32", 4, DType::kF32},
    {"F16", 2, DType::kF16},
    {"BF16", 2, DType::kBF16},
    {"F64", 8, std::nullopt},
    {"F8_E4M3", 1, std::nullopt},
    {"F8_E5M2", 1, std::nullopt},
    {"I8", 1, std::nullopt},
    {"I16", 2, std::nullopt},
    {"I32", 4, std::nullopt},
    {"I64", 8, std::nullopt},
    {"U8", 1, std::nullopt},
    {"U16", 2, std::nullopt},
    {"U32", 4, std::nullopt},
    {"U64", 8, std::nullopt},
    {"BOOL", 1, std::nullopt},
}};

// One tensor of the header, checked against itself but not the others.
struct Entry {
  std::string name;
  DTypeRow dtype;
  std::vector<int64_t> shape;
  int64_t begin;
  int64_t end;
};

// What every message about one file (and tensor) begins with.
std::string InFile(const std::string& path) {
  return absl::StrCat("'", path, "': ");
}
std::string InTensor(const std::string& path, const std::string& name) {
  return absl::StrCat("'", path, "': tensor ", Shown(name), ": ");
}

// A non-negative JSON integer that fits into 63 bits.
std::optional<int64_t> ToSize(const json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const uint64_t number = value.get<uint64_t>();
  if (number > std::numeric_limits<int64_t>::max()) return std::nullopt;
  return static_cast<int64_t>(number);
}

// An array of such integers.
std::optional<std::vector<int64_t>> ToSizes(const json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<int64_t> sizes;
  sizes.reserve(value.size());
  for (const json& element : value) {
    const std::optional<int64_t> size = ToSize(element);
    if (!size.has_value()) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

// The bytes that a shape takes; nothing when they don't fit into 63 bits.
std::optional<int64_t> NumBytes(const std::vector<int64_t>& shape,
                                int64_t element_bytes) {
  int64_t bytes = element_bytes;
  for (const int64_t dimension : shape) {
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) return std::nullopt;
  }
  return bytes;
}

absl::StatusOr<DTypeRow> ParseDType(const json& value,
                                    const std::string& where) {
  if (value.is_string()) {
    const auto* row = std::ranges::find(
        kDTypes, value.get_ref<const std::string&>(), &DTypeRow::name);
    if (row != kDTypes.end()) return *row;
  }
  std::string known;
  for (const DTypeRow& row : kDTypes) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", std::string(row.name));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      where, "dtype is ", ShownJson(value), "; expected one of ", known));
}

absl::StatusOr<Entry> ParseEntry(const std::string& path,
                                 const std::string& name, const json& fields,
                                 int64_t data_bytes) {
  const std::string where = InTensor(path, name);
  if (!fields.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, "found ", ShownJson(fields),
        "; expected an object with dtype, shape and data_offsets"));
  }
  for (const char* field : {"dtype", "shape", "data_offsets"}) {
    if (!fields.contains(field)) {
      return absl::InvalidArgumentError(absl::StrCat(where, "has no ", field));
    }
  }
  FOLIO_ASSIGN_OR_RETURN(const DTypeRow dtype,
                         ParseDType(fields["dtype"], where));

  std::optional<std::vector<int64_t>> shape = ToSizes(fields["shape"]);
  if (!shape.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, "shape is ", ShownJson(fields["shape"]),
                     "; expected an array of non-negative integers"));
  }
  const std::optional<int64_t> bytes = NumBytes(*shape, dtype.bytes);
  if (!bytes.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, "shape ", ShownJson(fields["shape"]),
                     " takes more than 2^63 bytes"));
  }

  const json& range = fields["data_offsets"];
  const std::optional<std::vector<int64_t>> offsets = ToSizes(range);
  if (!offsets.has_value() || offsets->size() != 2 ||
      (*offsets)[0] > (*offsets)[1]) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, "data_offsets is ", ShownJson(range),
                     "; expected [begin, end] with 0 <= begin <= end"));
  }
  const int64_t begin = (*offsets)[0];
  const int64_t end = (*offsets)[1];
  if (end > data_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, "data_offsets ", ShownJson(range), " end past the ",
                     data_bytes, " bytes of data that the file holds; it may ",
                     "have been cut short: download it again"));
  }
  if (end - begin != *bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, "data_offsets ", ShownJson(range), " hold ", end - begin,
        " bytes, but shape ", ShownJson(fields["shape"]), " of ",
        std::string(dtype.name), " takes ", *bytes));
  }
  return Entry{name, dtype, *std::move(shape), begin, end};
}

// The header's text. `data_begin` is set to where the data begins.
absl::StatusOr<std::string_view> HeaderText(std::string_view file,
                                            const std::string& path,
                                            int64_t& data_begin) {
  if (file.size() < kLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(InFile(path), "has ", file.size(),
                     " bytes; a safetensors file begins with the 8 bytes of "
                     "its header's length"));
  }
  uint64_t length = 0;
  for (int i = kLengthBytes - 1; i >= 0; --i) {
    length = length << 8 | static_cast<uint8_t>(file[i]);
  }
  const uint64_t after = file.size() - kLengthBytes;
  if (length > kMaxHeaderBytes || length > after) {
    return absl::InvalidArgumentError(absl::StrCat(
        InFile(path), "its header claims ", length, " bytes; the file has ",
        after, " after the length, and the format allows ", kMaxHeaderBytes,
        ". Is it a safetensors file, and whole?"));
  }
  data_begin = kLengthBytes + static_cast<int64_t>(length);
  return file.substr(kLengthBytes, length);
}

absl::Status CheckMetadata(const json& metadata, const std::string& path) {
  const bool good = metadata.is_object() &&
                    std::ranges::all_of(
                        metadata, [](const json& v) { return v.is_string(); });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(InFile(path), "__metadata__ is ", ShownJson(metadata),
                   "; expected an object whose values are strings"));
}

// Sorts `entries` by place, and checks that they tile [0, data_bytes).
absl::Status CheckTiling(std::vector<Entry>& entries, const std::string& path,
                         int64_t data_bytes) {
  std::ranges::sort(entries, {}, [](const Entry& entry) {
    return std::tie(entry.begin, entry.end, entry.name);
  });
  int64_t covered = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != covered) {
      return absl::InvalidArgumentError(absl::StrCat(
          InTensor(path, entry.name), "begins at offset ", entry.begin,
          entry.begin < covered ? ", inside the tensor before it"
                                : ", after a hole",
          "; expected ", covered));
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(InFile(path), "its tensors end at offset ", covered,
                     ", but the file holds ", data_bytes, " bytes of data"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorTable> ReadSafetensors(
    std::shared_ptr<const MappedFile> file) {
  const std::string& path = file->path();
  int64_t data_begin = 0;
  FOLIO_ASSIGN_OR_RETURN(const std::string_view text,
                         HeaderText(file->text(), path, data_begin));
  const std::span<const std::byte> data = file->bytes().subspan(data_begin);
  const int64_t data_bytes = static_cast<int64_t>(data.size());
  FOLIO_ASSIGN_OR_RETURN(const json header,
                         ParseJson(text, InFile(path) + "header"));
  if (!header.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(InFile(path), "its header is ", ShownJson(header),
                     "; expected an object"));
  }

  std::vector<Entry> entries;
  for (const auto& [name, fields] : header.items()) {
    if (name == kMetadata) {
      FOLIO_RETURN_IF_ERROR(CheckMetadata(fields, path));
      continue;
    }
    FOLIO_ASSIGN_OR_RETURN(Entry entry,
                           ParseEntry(path, name, fields, data_bytes));
    entries.push_back(std::move(entry));
  }
  FOLIO_RETURN_IF_ERROR(CheckTiling(entries, path, data_bytes));

  TensorTable table;
  for (Entry& entry : entries) {
    if (entry.dtype.dtype.has_value()) {
      table.tensors[entry.name] = {
          *entry.dtype.dtype, std::move(entry.shape),
          data.subspan(entry.begin, entry.end - entry.begin), file};
    } else {
      table.unreadable[entry.name] = entry.dtype.name;
    }
  }
  return table;
}

}  // namespace folio
