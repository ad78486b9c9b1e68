#include "tests/fuzz/touch.h"

#include <glog/logging.h>

#include <span>
#include <string>
#include <vector>

#include "runtime/base/utf8.h"
#include "runtime/weights/to_float.h"

namespace folio {

std::shared_ptr<const MappedFile> FuzzFile(const uint8_t* data, size_t size) {
  return MappedFile::OfMemory(std::string(kFuzzFile),
                              std::as_bytes(std::span(data, size)));
}

void CheckRefusal(const absl::Status& status) {
  constexpr size_t kMaxMessageBytes = 4096;
  CHECK(status.code() == absl::StatusCode::kInvalidArgument) << status;
  const std::string message(status.message());
  CHECK(message.find(kFuzzFile) != message.npos) << message;
  CHECK_LE(message.size(), kMaxMessageBytes);
  CHECK(IsValidUtf8(message)) << message;
}

void TouchTensors(const TensorTable& table) {
  constexpr int64_t kMaxElements = 1 << 16;
  for (const auto& [name, tensor] : table.tensors) {
    const DTypeInfo& info = InfoOf(tensor.dtype);
    CHECK_EQ(tensor.num_elements() / info.block_elements * info.block_bytes,
             static_cast<int64_t>(tensor.bytes.size()));
    unsigned sum = 0;
    for (const std::byte byte : tensor.bytes) {
      sum += std::to_integer<unsigned>(byte);
    }
    CHECK_LE(sum, 255 * tensor.bytes.size());  // So that it is computed.
    if (tensor.num_elements() <= kMaxElements) {
      const std::vector<float> floats = ToFloat(tensor);
      CHECK_EQ(static_cast<int64_t>(floats.size()), tensor.num_elements());
    }
  }
}

}  // namespace folio
