#include "runtime/weights/gguf.h"

#include <bit>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/gguf_metadata.h"
#include "runtime/weights/gguf_reader.h"
#include "runtime/weights/gguf_tensors.h"
#include "runtime/weights/shown.h"

namespace folio {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint32_t kMinVersion = 2;
constexpr uint32_t kMaxVersion = 3;
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr uint32_t kDefaultAlignment = 32;
constexpr uint32_t kMinAlignment = 8;

absl::Status ReadMagic(GgufReader& reader) {
  std::span<const std::byte> bytes;
  if (!reader.ReadBytes(kMagic.size(), bytes)) {
    return reader.Truncated("the first word, \"GGUF\",");
  }
  const std::string_view magic(reinterpret_cast<const char*>(bytes.data()),
                               bytes.size());
  if (magic == kMagic) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(reader.InFile(), "it begins with ", Shown(magic),
                   "; a GGUF file begins with 'GGUF'"));
}

absl::Status ReadVersion(GgufReader& reader) {
  uint32_t version = 0;
  if (!reader.Read(version)) return reader.Truncated("the version");
  if (version >= kMinVersion && version <= kMaxVersion) return absl::OkStatus();
  // A big-endian file has the version's one small byte at the other end.
  const uint32_t swapped = __builtin_bswap32(version);
  if (version > 0xFFFF && swapped <= 0xFFFF) {
    return absl::InvalidArgumentError(absl::StrCat(
        reader.InFile(), "it is a big-endian GGUF file (version ", swapped,
        "); supported are little-endian ones: convert it"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      reader.InFile(), "it is GGUF version ", version,
      "; supported are versions ", kMinVersion, " and ", kMaxVersion,
      version < kMinVersion ? ": convert the model again"
                            : ": a newer Folio may read it"));
}

absl::StatusOr<uint32_t> AlignmentOf(const GgufReader& reader,
                                     const GgufMetadata& metadata) {
  const auto entry = metadata.find(kAlignmentKey);
  if (entry == metadata.end()) return kDefaultAlignment;
  const std::string where =
      absl::StrCat(reader.InFile(), "key ", Shown(kAlignmentKey), ": ");
  if (entry->second.type != GgufType::kUint32) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, "found ", NameOf(entry->second), "; expected u32"));
  }
  FOLIO_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                         GgufNumbers<int64_t>(entry->second, where));
  const auto alignment = static_cast<uint32_t>(numbers[0]);
  if (!std::has_single_bit(alignment) || alignment < kMinAlignment) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, "found ", alignment,
                     "; expected a power of two of at least ", kMinAlignment));
  }
  return alignment;
}

}  // namespace

struct GgufFile::Contents {
  std::shared_ptr<const MappedFile> file;
  GgufMetadata metadata;
  TensorTable tensors;

  // How messages begin.
  std::string Where(std::string_view key) const {
    return absl::StrCat("'", file->path(), "': key ", Shown(key), ": ");
  }

  absl::StatusOr<const GgufValue*> Find(std::string_view key) const {
    const auto entry = metadata.find(key);
    if (entry != metadata.end()) return &entry->second;
    return absl::NotFoundError(absl::StrCat(Where(key), "it is missing"));
  }

  // The value, which has to be of `type`; an array if `is_array`.
  absl::StatusOr<const GgufValue*> Find(std::string_view key, GgufType type,
                                        bool is_array) const {
    FOLIO_ASSIGN_OR_RETURN(const GgufValue* value, Find(key));
    if (value->element_type == type &&
        (value->type == GgufType::kArray) == is_array) {
      return value;
    }
    const GgufValue wanted = {is_array ? GgufType::kArray : type, type};
    return absl::InvalidArgumentError(absl::StrCat(
        Where(key), "found ", NameOf(*value), "; expected ", NameOf(wanted)));
  }

  template <typename T>
  absl::StatusOr<std::vector<T>> Numbers(std::string_view key,
                                         bool is_array) const {
    FOLIO_ASSIGN_OR_RETURN(const GgufValue* value, Find(key));
    if ((value->type == GgufType::kArray) != is_array) {
      return absl::InvalidArgumentError(
          absl::StrCat(Where(key), "found ", NameOf(*value), "; expected ",
                       is_array ? "an array of numbers" : "one number"));
    }
    return GgufNumbers<T>(*value, Where(key));
  }
};

GgufFile::GgufFile(std::unique_ptr<Contents> contents)
    : contents_(std::move(contents)) {}
GgufFile::~GgufFile() = default;

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Parse(
    std::shared_ptr<const MappedFile> file) {
  GgufReader reader(file);
  FOLIO_RETURN_IF_ERROR(ReadMagic(reader));
  FOLIO_RETURN_IF_ERROR(ReadVersion(reader));
  uint64_t num_tensors = 0;
  uint64_t num_entries = 0;
  if (!reader.Read(num_tensors) || !reader.Read(num_entries)) {
    return reader.Truncated("the number of tensors and metadata entries");
  }
  auto contents = std::make_unique<Contents>();
  contents->file = std::move(file);
  FOLIO_ASSIGN_OR_RETURN(contents->metadata,
                         ReadGgufMetadata(reader, num_entries));
  FOLIO_ASSIGN_OR_RETURN(const uint32_t alignment,
                         AlignmentOf(reader, contents->metadata));
  FOLIO_ASSIGN_OR_RETURN(contents->tensors,
                         ReadGgufTensors(reader, num_tensors, alignment));
  return std::unique_ptr<GgufFile>(new GgufFile(std::move(contents)));
}

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Open(
    const std::string& path) {
  FOLIO_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                         MappedFile::Open(path));
  return Parse(std::move(file));
}

const std::string& GgufFile::path() const { return contents_->file->path(); }

std::vector<std::string_view> GgufFile::keys() const {
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : contents_->metadata) keys.push_back(key);
  return keys;
}

bool GgufFile::Has(std::string_view key) const {
  return contents_->metadata.contains(key);
}

absl::StatusOr<int64_t> GgufFile::Integer(std::string_view key) const {
  FOLIO_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                         contents_->Numbers<int64_t>(key, /*is_array=*/false));
  return numbers[0];
}

absl::StatusOr<double> GgufFile::Number(std::string_view key) const {
  FOLIO_ASSIGN_OR_RETURN(const std::vector<double> numbers,
                         contents_->Numbers<double>(key, /*is_array=*/false));
  return numbers[0];
}

absl::StatusOr<bool> GgufFile::Bool(std::string_view key) const {
  FOLIO_ASSIGN_OR_RETURN(
      const GgufValue* value,
      contents_->Find(key, GgufType::kBool, /*is_array=*/false));
  return value->bytes[0] != std::byte{0};
}

absl::StatusOr<std::string_view> GgufFile::String(std::string_view key) const {
  FOLIO_ASSIGN_OR_RETURN(
      const GgufValue* value,
      contents_->Find(key, GgufType::kString, /*is_array=*/false));
  return value->strings[0];
}

absl::StatusOr<std::span<const std::string_view>> GgufFile::Strings(
    std::string_view key) const {
  FOLIO_ASSIGN_OR_RETURN(
      const GgufValue* value,
      contents_->Find(key, GgufType::kString, /*is_array=*/true));
  return std::span<const std::string_view>(value->strings);
}

absl::StatusOr<std::vector<int64_t>> GgufFile::Integers(
    std::string_view key) const {
  return contents_->Numbers<int64_t>(key, /*is_array=*/true);
}

absl::StatusOr<std::vector<double>> GgufFile::Numbers(
    std::string_view key) const {
  return contents_->Numbers<double>(key, /*is_array=*/true);
}

const TensorTable& GgufFile::tensors() const { return contents_->tensors; }

}  // namespace folio
