// Named tensors of a model's files, mapped read-only.

#ifndef RUNTIME_WEIGHTS_TENSOR_TABLE_H_
#define RUNTIME_WEIGHTS_TENSOR_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/weights/mapped_file.h"

namespace folio {

// How a file stores numbers. Those from kQ8_0 on are GGUF's quantised types,
// which store blocks of neighbouring elements of one row.
enum class DType {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

// A block is what a type stores at once: one element of F32, 32 or 256 of a
// quantised type.
struct DTypeInfo {
  std::string_view name;  // "F32", "Q4_K"
  int32_t block_elements;
  int32_t block_bytes;
};

const DTypeInfo& InfoOf(DType dtype);

// One tensor; owns a share of its file. Rows consist of whole blocks.
struct TensorView {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;        // Outermost dimension first.
  std::span<const std::byte> bytes;  // Row-major, little-endian, unaligned.
  std::shared_ptr<const MappedFile> file;

  int64_t num_elements() const {
    int64_t elements = 1;
    for (const int64_t dimension : shape) elements *= dimension;
    return elements;
  }
};

// The tensors of one file, or of the shards of one model, by name.
struct TensorTable {
  std::map<std::string, TensorView, std::less<>> tensors;
  // Tensors of types that Folio does not compute with, name to type ("I64"):
  // some exports carry integer masks that no model needs.
  std::map<std::string, std::string, std::less<>> unreadable;
};

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_TENSOR_TABLE_H_
