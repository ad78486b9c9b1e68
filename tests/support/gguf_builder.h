// Writes GGUF files, good ones and bad ones.

#ifndef TESTS_SUPPORT_GGUF_BUILDER_H_
#define TESTS_SUPPORT_GGUF_BUILDER_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/weights/gguf_metadata.h"
#include "runtime/weights/tensor_table.h"
#include "tests/support/bytes.h"

namespace folio {

// The format's number for the type T of a value.
template <typename T>
constexpr GgufType GgufTypeOf() {
  if constexpr (std::same_as<T, uint8_t>) return GgufType::kUint8;
  if constexpr (std::same_as<T, int8_t>) return GgufType::kInt8;
  if constexpr (std::same_as<T, uint16_t>) return GgufType::kUint16;
  if constexpr (std::same_as<T, int16_t>) return GgufType::kInt16;
  if constexpr (std::same_as<T, uint32_t>) return GgufType::kUint32;
  if constexpr (std::same_as<T, int32_t>) return GgufType::kInt32;
  if constexpr (std::same_as<T, float>) return GgufType::kFloat32;
  if constexpr (std::same_as<T, bool>) return GgufType::kBool;
  if constexpr (std::same_as<T, uint64_t>) return GgufType::kUint64;
  if constexpr (std::same_as<T, int64_t>) return GgufType::kInt64;
  if constexpr (std::same_as<T, double>) return GgufType::kFloat64;
  return GgufType::kString;
}

// The number of `dtype` in GGUF files.
uint32_t GgmlTypeOf(DType dtype);

// A GGUF string: length and bytes.
std::string GgufString(std::string_view text);

// Metadata and tensors are written in the order in which they are added.
//
//   const std::string file = GgufBuilder()
//       .Add("general.architecture", "llama")
//       .Add("llama.block_count", uint32_t{2})
//       .AddArray<std::string>("tokenizer.ggml.tokens", {"a", "b"})
//       .AddF32("output_norm.weight", {3}, {1, 2, 3})
//       .Build();
class GgufBuilder {
 public:
  explicit GgufBuilder(uint32_t version = 3) : version_(version) {}

  GgufBuilder& Add(std::string_view key, std::string_view value) {
    return AddRaw(key, static_cast<uint32_t>(GgufType::kString),
                  GgufString(value));
  }
  GgufBuilder& Add(std::string_view key, const char* value) {
    return Add(key, std::string_view(value));
  }
  template <typename T>
  requires std::integral<T> || std::floating_point<T> GgufBuilder& Add(
      std::string_view key, T value) {
    return AddRaw(key, static_cast<uint32_t>(GgufTypeOf<T>()), BytesOf(value));
  }
  // T is one of those types, or std::string.
  template <typename T>
  GgufBuilder& AddArray(std::string_view key, const std::vector<T>& values) {
    std::string bytes = BytesOf(static_cast<uint32_t>(GgufTypeOf<T>())) +
                        BytesOf(uint64_t{values.size()});
    for (const auto& value : values) {
      if constexpr (std::same_as<T, std::string>) {
        bytes += GgufString(value);
      } else {
        bytes += BytesOf<T>(value);
      }
    }
    return AddRaw(key, static_cast<uint32_t>(GgufType::kArray), bytes);
  }
  // A value of any type number and bytes.
  GgufBuilder& AddRaw(std::string_view key, uint32_t type,
                      std::string_view bytes);

  // `shape` has the outermost dimension first; `bytes` are the tensor's data.
  GgufBuilder& AddTensor(std::string_view name, DType dtype,
                         const std::vector<int64_t>& shape,
                         std::string_view bytes);
  GgufBuilder& AddF32(std::string_view name, const std::vector<int64_t>& shape,
                      const std::vector<float>& values);
  // A description alone: dimensions innermost first, any type, any offset.
  GgufBuilder& AddRawTensor(std::string_view name,
                            const std::vector<uint64_t>& dimensions,
                            uint32_t type, uint64_t offset);

  // Where tensors begin is a multiple of this; 32 otherwise.
  GgufBuilder& SetAlignment(uint32_t alignment);
  // Data after that of the tensors so far.
  GgufBuilder& AddData(std::string_view bytes) {
    data_ += bytes;
    return *this;
  }

  std::string Build() const;

 private:
  const uint32_t version_;
  uint32_t alignment_ = 32;
  uint64_t num_entries_ = 0;
  uint64_t num_tensors_ = 0;
  std::string metadata_;
  std::string tensors_;
  std::string data_;
};

}  // namespace folio

#endif  // TESTS_SUPPORT_GGUF_BUILDER_H_
