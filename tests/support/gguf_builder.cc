#include "tests/support/gguf_builder.h"

#include <glog/logging.h>

namespace folio {
namespace {

void PadTo(uint32_t alignment, std::string& bytes) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, '\0');
}

}  // namespace

uint32_t GgmlTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ5_0:
      return 6;
    case DType::kQ5_1:
      return 7;
    case DType::kQ8_0:
      return 8;
    case DType::kQ2_K:
      return 10;
    case DType::kQ3_K:
      return 11;
    case DType::kQ4_K:
      return 12;
    case DType::kQ5_K:
      return 13;
    case DType::kQ6_K:
      return 14;
    case DType::kBF16:
      return 30;
  }
  LOG(FATAL) << "not a DType: " << static_cast<int>(dtype);
}

std::string GgufString(std::string_view text) {
  return BytesOf(uint64_t{text.size()}) + std::string(text);
}

GgufBuilder& GgufBuilder::AddRaw(std::string_view key, uint32_t type,
                                 std::string_view bytes) {
  ++num_entries_;
  metadata_ += GgufString(key) + BytesOf(type);
  metadata_ += bytes;
  return *this;
}

GgufBuilder& GgufBuilder::AddTensor(std::string_view name, DType dtype,
                                    const std::vector<int64_t>& shape,
                                    std::string_view bytes) {
  PadTo(alignment_, data_);
  AddRawTensor(name, {shape.rbegin(), shape.rend()}, GgmlTypeOf(dtype),
               data_.size());
  return AddData(bytes);
}

GgufBuilder& GgufBuilder::AddF32(std::string_view name,
                                 const std::vector<int64_t>& shape,
                                 const std::vector<float>& values) {
  return AddTensor(name, DType::kF32, shape, BytesOf(values));
}

GgufBuilder& GgufBuilder::AddRawTensor(std::string_view name,
                                       const std::vector<uint64_t>& dimensions,
                                       uint32_t type, uint64_t offset) {
  ++num_tensors_;
  tensors_ += GgufString(name);
  tensors_ += BytesOf(static_cast<uint32_t>(dimensions.size()));
  tensors_ += BytesOf(dimensions) + BytesOf(type) + BytesOf(offset);
  return *this;
}

GgufBuilder& GgufBuilder::SetAlignment(uint32_t alignment) {
  alignment_ = alignment;
  return Add("general.alignment", alignment);
}

std::string GgufBuilder::Build() const {
  std::string file = "GGUF";
  file += BytesOf(version_) + BytesOf(num_tensors_) + BytesOf(num_entries_);
  file += metadata_ + tensors_;
  if (num_tensors_ > 0) PadTo(alignment_, file);
  return file + data_;
}

}  // namespace folio
