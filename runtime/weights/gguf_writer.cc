#include "runtime/weights/gguf_writer.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "runtime/weights/from_float.h"
#include "runtime/weights/gguf_metadata.h"
#include "runtime/weights/gguf_tensors.h"

namespace folio {
namespace {

static_assert(std::endian::native == std::endian::little,
              "files of weights are little-endian, and so must the machine be");

constexpr uint64_t kAlignment = 32;

// Elements that are read and rounded at once, if that is a whole row.
constexpr int64_t kPieceElements = 1 << 16;

uint64_t Aligned(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename T>
requires std::integral<T> || std::floating_point<T>
void Append(T number, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void Append(std::string_view text, std::string& bytes) {
  Append(uint64_t{text.size()}, bytes);
  bytes += text;
}

template <typename T>
void AppendEntry(std::string_view key, GgufType type, T value,
                 std::string& bytes) {
  Append(key, bytes);
  Append(static_cast<uint32_t>(type), bytes);
  Append(value, bytes);
}

int64_t BytesOf(DType dtype, int64_t elements) {
  const DTypeInfo& info = InfoOf(dtype);
  return elements / info.block_elements * info.block_bytes;
}

absl::Status WriteError(const std::string& path) {
  return absl::ErrnoToStatus(errno == 0 ? EIO : errno,
                             absl::StrCat("writing '", path, "'"));
}

}  // namespace

void GgufWriter::Add(std::string_view key, std::string_view value) {
  AppendEntry(key, GgufType::kString, value, entries_);
  ++num_entries_;
}

void GgufWriter::Add(std::string_view key, uint32_t value) {
  AppendEntry(key, GgufType::kUint32, value, entries_);
  ++num_entries_;
}

void GgufWriter::Add(std::string_view key, float value) {
  AppendEntry(key, GgufType::kFloat32, value, entries_);
  ++num_entries_;
}

void GgufWriter::AddTensor(const std::string& name, DType dtype,
                           const std::vector<int64_t>& shape) {
  CHECK(CanWrite(dtype)) << InfoOf(dtype).name;
  CHECK(!shape.empty() && shape.size() <= 4);
  CHECK_EQ(shape.back() % InfoOf(dtype).block_elements, 0) << name;
  Tensor tensor{name, dtype, 1, shape.back(), data_bytes_};
  Append(name, descriptions_);
  Append(static_cast<uint32_t>(shape.size()), descriptions_);
  std::for_each(shape.rbegin(), shape.rend(), [&](int64_t dimension) {
    Append(static_cast<uint64_t>(dimension), descriptions_);
    tensor.elements *= dimension;
  });
  Append(GgufNumberOf(dtype), descriptions_);
  Append(tensor.offset, descriptions_);
  data_bytes_ = Aligned(data_bytes_ +
                        static_cast<uint64_t>(BytesOf(dtype, tensor.elements)));
  tensors_.push_back(std::move(tensor));
}

std::string GgufWriter::Header() const {
  std::string header = "GGUF";
  Append(uint32_t{3}, header);
  Append(uint64_t{tensors_.size()}, header);
  Append(num_entries_, header);
  header += entries_;
  header += descriptions_;
  header.resize(Aligned(header.size()), '\0');
  return header;
}

absl::Status GgufWriter::Write(const std::string& path, ReadTensor read) const {
  const std::string partial = path + ".partial";
  absl::Status status = WriteTo(partial, read);
  errno = 0;
  if (status.ok() && std::rename(partial.c_str(), path.c_str()) != 0) {
    status = WriteError(path);
  }
  if (!status.ok()) std::remove(partial.c_str());
  return status;
}

absl::Status GgufWriter::WriteTo(const std::string& path,
                                 ReadTensor read) const {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) return WriteError(path);
  const std::string header = Header();
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  std::vector<float> values;
  std::string bytes;
  for (const Tensor& tensor : tensors_) {
    const int64_t piece =
        std::max<int64_t>(1, kPieceElements / tensor.row_elements) *
        tensor.row_elements;
    for (int64_t first = 0; first < tensor.elements; first += piece) {
      values.resize(std::min(piece, tensor.elements - first));
      read(tensor.name, first, values);
      bytes.resize(BytesOf(tensor.dtype, static_cast<int64_t>(values.size())));
      FromFloat(tensor.dtype, values, std::as_writable_bytes(std::span(bytes)));
      file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    const auto size =
        static_cast<uint64_t>(BytesOf(tensor.dtype, tensor.elements));
    bytes.assign(Aligned(size) - size, '\0');
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file) return WriteError(path);
  }
  file.close();
  return file ? absl::OkStatus() : WriteError(path);
}

}  // namespace folio
