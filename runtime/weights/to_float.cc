#include "runtime/weights/to_float.h"

#include <glog/logging.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/weights/dequantise.h"
#include "runtime/weights/half.h"

namespace folio {
namespace {

static_assert(std::endian::native == std::endian::little,
              "files of weights are little-endian, and so must the machine be");

// Reads each element as 16 bits; the bytes need not be aligned.
template <typename Convert>
void ConvertHalves(const std::byte* bytes, std::span<float> out,
                   Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t element;
    std::memcpy(&element, bytes + i * sizeof(element), sizeof(element));
    out[i] = convert(element);
  }
}

void Convert(DType dtype, const std::byte* bytes, std::span<float> out) {
  switch (dtype) {
    case DType::kF32:
      std::memcpy(out.data(), bytes, out.size_bytes());
      return;
    case DType::kF16:
      return ConvertHalves(bytes, out, F16ToFloat);
    case DType::kBF16:
      return ConvertHalves(bytes, out, Bf16ToFloat);
    case DType::kQ8_0:
      return DequantiseQ8_0(bytes, out);
    case DType::kQ4_0:
      return DequantiseQ4_0(bytes, out);
    case DType::kQ4_1:
      return DequantiseQ4_1(bytes, out);
    case DType::kQ5_0:
      return DequantiseQ5_0(bytes, out);
    case DType::kQ5_1:
      return DequantiseQ5_1(bytes, out);
    case DType::kQ2_K:
      return DequantiseQ2_K(bytes, out);
    case DType::kQ3_K:
      return DequantiseQ3_K(bytes, out);
    case DType::kQ4_K:
      return DequantiseQ4_K(bytes, out);
    case DType::kQ5_K:
      return DequantiseQ5_K(bytes, out);
    case DType::kQ6_K:
      return DequantiseQ6_K(bytes, out);
  }
  LOG(FATAL) << "not a DType: " << static_cast<int>(dtype);
}

}  // namespace

void ToFloat(const TensorView& tensor, int64_t first, std::span<float> out) {
  const DTypeInfo& info = InfoOf(tensor.dtype);
  const auto count = static_cast<int64_t>(out.size());
  CHECK(first % info.block_elements == 0 && count % info.block_elements == 0)
      << first << " and " << count << ": not whole blocks of "
      << info.block_elements;
  const int64_t begin = first / info.block_elements * info.block_bytes;
  const int64_t size = count / info.block_elements * info.block_bytes;
  const auto num_bytes = static_cast<int64_t>(tensor.bytes.size());
  CHECK(first >= 0 && begin <= num_bytes && size <= num_bytes - begin)
      << count << " elements from " << first << " on are not inside the tensor";
  if (count == 0) return;
  Convert(tensor.dtype, tensor.bytes.data() + begin, out);
}

std::vector<float> ToFloat(const TensorView& tensor) {
  std::vector<float> floats(tensor.num_elements());
  ToFloat(tensor, 0, floats);
  return floats;
}

}  // namespace folio
