#include "runtime/weights/gguf_metadata.h"

#include <algorithm>
#include <concepts>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/shown.h"

namespace folio {
namespace {

struct TypeInfo {
  std::string_view name;
  int bytes;  // 0 for those of varying size.
};

const TypeInfo& InfoOf(GgufType type) {
  // In the order of GgufType.
  static constexpr TypeInfo kInfo[kNumGgufTypes] = {
      {"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2},    {"u32", 4},
      {"i32", 4}, {"f32", 4}, {"bool", 1}, {"string", 0}, {"array", 0},
      {"u64", 8}, {"i64", 8}, {"f64", 8},
  };
  return kInfo[static_cast<uint32_t>(type)];
}

// The fewest bytes that one entry can take: key, type and a one-byte value.
constexpr uint64_t kMinEntryBytes = 8 + 4 + 1;

absl::Status ReadType(GgufReader& reader, const std::string& where,
                      GgufType& type) {
  uint32_t number = 0;
  if (!reader.Read(number)) return reader.Truncated(where + "its type");
  if (number >= kNumGgufTypes) {
    return absl::InvalidArgumentError(
        absl::StrCat(reader.InFile(), where, "the type is ", number,
                     "; the format has types 0 to ", kNumGgufTypes - 1));
  }
  type = static_cast<GgufType>(number);
  return absl::OkStatus();
}

// Sets type, element_type and count.
absl::Status ReadHeader(GgufReader& reader, const std::string& where,
                        GgufValue& value) {
  FOLIO_RETURN_IF_ERROR(ReadType(reader, where, value.type));
  value.element_type = value.type;
  value.count = 1;
  if (value.type != GgufType::kArray) return absl::OkStatus();

  FOLIO_RETURN_IF_ERROR(
      ReadType(reader, where + "the array's elements: ", value.element_type));
  if (value.element_type == GgufType::kArray) {
    return absl::InvalidArgumentError(
        absl::StrCat(reader.InFile(), where,
                     "it is an array of arrays; supported are arrays of "
                     "numbers, bools and strings"));
  }
  if (!reader.Read(value.count)) {
    return reader.Truncated(where + "the array's length");
  }
  // An element takes at least one byte, a string the eight of its length. This
  // bounds the memory for elements that the file does not have.
  const int element_bytes = InfoOf(value.element_type).bytes;
  const uint64_t min_bytes = element_bytes == 0 ? 8 : element_bytes;
  if (value.count > reader.remaining() / min_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(reader.InFile(), where, "the array claims ", value.count,
                     " elements of at least ", min_bytes,
                     " bytes, but the file has only ", reader.remaining(),
                     " there; it may have been cut short: download it again"));
  }
  return absl::OkStatus();
}

absl::Status ReadStrings(GgufReader& reader, const std::string& where,
                         GgufValue& value) {
  value.strings.resize(value.count);
  for (uint64_t i = 0; i < value.count; ++i) {
    if (!reader.ReadString(value.strings[i])) {
      return reader.Truncated(absl::StrCat(where, "string ", i));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<GgufValue> ReadValue(GgufReader& reader,
                                    const std::string& where) {
  GgufValue value;
  FOLIO_RETURN_IF_ERROR(ReadHeader(reader, where, value));
  if (value.element_type == GgufType::kString) {
    FOLIO_RETURN_IF_ERROR(ReadStrings(reader, where, value));
    return value;
  }
  const uint64_t bytes = value.count * InfoOf(value.element_type).bytes;
  if (!reader.ReadBytes(bytes, value.bytes)) {
    return reader.Truncated(where + "its value");
  }
  if (value.element_type == GgufType::kBool) {
    const auto bad = std::ranges::find_if(
        value.bytes, [](std::byte byte) { return byte > std::byte{1}; });
    if (bad != value.bytes.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(reader.InFile(), where, "a bool is ",
                       static_cast<int>(*bad), "; expected 0 or 1"));
    }
  }
  return value;
}

template <typename T, typename Element>
absl::Status Append(std::span<const std::byte> bytes, const std::string& where,
                    std::vector<T>& numbers) {
  numbers.reserve(bytes.size() / sizeof(Element));
  for (size_t at = 0; at < bytes.size(); at += sizeof(Element)) {
    Element element;
    std::memcpy(&element, bytes.data() + at, sizeof(element));
    if constexpr (std::integral<T>) {
      if (!std::in_range<T>(element)) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, "found ", element, "; expected at most ",
                         std::numeric_limits<T>::max()));
      }
    }
    numbers.push_back(static_cast<T>(element));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status AppendAll(const GgufValue& value, const std::string& where,
                       std::vector<T>& numbers) {
  switch (value.element_type) {
    case GgufType::kUint8:
      return Append<T, uint8_t>(value.bytes, where, numbers);
    case GgufType::kInt8:
      return Append<T, int8_t>(value.bytes, where, numbers);
    case GgufType::kUint16:
      return Append<T, uint16_t>(value.bytes, where, numbers);
    case GgufType::kInt16:
      return Append<T, int16_t>(value.bytes, where, numbers);
    case GgufType::kUint32:
      return Append<T, uint32_t>(value.bytes, where, numbers);
    case GgufType::kInt32:
      return Append<T, int32_t>(value.bytes, where, numbers);
    case GgufType::kUint64:
      return Append<T, uint64_t>(value.bytes, where, numbers);
    case GgufType::kInt64:
      return Append<T, int64_t>(value.bytes, where, numbers);
    default:
      break;
  }
  if constexpr (std::floating_point<T>) {
    if (value.element_type == GgufType::kFloat32) {
      return Append<T, float>(value.bytes, where, numbers);
    }
    if (value.element_type == GgufType::kFloat64) {
      return Append<T, double>(value.bytes, where, numbers);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(where, "found ", NameOf(value), "; expected ",
                   std::integral<T> ? "an integer type" : "a number type"));
}

}  // namespace

absl::StatusOr<GgufMetadata> ReadGgufMetadata(GgufReader& reader,
                                              uint64_t count) {
  if (count > reader.remaining() / kMinEntryBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        reader.InFile(), "it claims ", count, " metadata entries of at least ",
        kMinEntryBytes, " bytes, but the file has only ", reader.remaining(),
        " after its header; it may have been cut short: download it again"));
  }
  GgufMetadata metadata;
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view key;
    if (!reader.ReadString(key)) {
      return reader.Truncated(absl::StrCat("the key of metadata entry ", i));
    }
    const auto [entry, is_new] = metadata.try_emplace(key);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(
          reader.InFile(), "the key ", Shown(key), " is there twice"));
    }
    FOLIO_ASSIGN_OR_RETURN(
        entry->second,
        ReadValue(reader, absl::StrCat("key ", Shown(key), ": ")));
  }
  return metadata;
}

std::string NameOf(const GgufValue& value) {
  return absl::StrCat(value.type == GgufType::kArray ? "array of " : "",
                      std::string(InfoOf(value.element_type).name));
}

template <typename T>
absl::StatusOr<std::vector<T>> GgufNumbers(const GgufValue& value,
                                           const std::string& where) {
  std::vector<T> numbers;
  FOLIO_RETURN_IF_ERROR(AppendAll(value, where, numbers));
  return numbers;
}

template absl::StatusOr<std::vector<int64_t>> GgufNumbers(const GgufValue&,
                                                          const std::string&);
template absl::StatusOr<std::vector<double>> GgufNumbers(const GgufValue&,
                                                         const std::string&);

}  // namespace folio
