#include "tests/support/safetensors_builder.h"

#include "tests/support/bytes.h"

namespace folio {

std::string SafetensorsOf(std::string_view header, std::string_view data) {
  return BytesOf(uint64_t{header.size()}) + std::string(header) +
         std::string(data);
}

SafetensorsBuilder& SafetensorsBuilder::Add(std::string_view name,
                                            std::string_view dtype,
                                            const std::vector<int64_t>& shape,
                                            std::string_view bytes) {
  const size_t begin = data_.size();
  data_ += bytes;
  header_[std::string(name)] = {{"dtype", std::string(dtype)},
                                {"shape", shape},
                                {"data_offsets", {begin, data_.size()}}};
  return *this;
}

SafetensorsBuilder& SafetensorsBuilder::AddF32(
    std::string_view name, const std::vector<int64_t>& shape,
    const std::vector<float>& values) {
  return Add(name, "F32", shape, BytesOf(values));
}

std::string SafetensorsBuilder::Build() const {
  return SafetensorsOf(header_.dump(), data_);
}

}  // namespace folio
