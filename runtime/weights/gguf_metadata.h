// The metadata of a GGUF file: what it knows about its model, by key.

#ifndef RUNTIME_WEIGHTS_GGUF_METADATA_H_
#define RUNTIME_WEIGHTS_GGUF_METADATA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/weights/gguf_reader.h"

namespace folio {

// The types of values, with the format's numbers.
enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
inline constexpr uint32_t kNumGgufTypes = 13;

// One value; what it views is in the file.
struct GgufValue {
  GgufType type;
  GgufType element_type;             // Of an array; otherwise `type`.
  uint64_t count;                    // Of an array's elements; otherwise 1.
  std::span<const std::byte> bytes;  // The numbers or bools.
  std::vector<std::string_view> strings;
};

using GgufMetadata = std::map<std::string_view, GgufValue>;

// Reads `count` entries. Every malformed one is an INVALID_ARGUMENT.
absl::StatusOr<GgufMetadata> ReadGgufMetadata(GgufReader& reader,
                                              uint64_t count);

// "u32", "string", "array of f32".
std::string NameOf(const GgufValue& value);

// The elements of `value` (one, unless it is an array) as T: int64_t for the
// integer types, double for these and the floating-point ones. INVALID_ARGUMENT
// for other types and for what int64_t does not hold; the message begins with
// `where`.
template <typename T>
absl::StatusOr<std::vector<T>> GgufNumbers(const GgufValue& value,
                                           const std::string& where);

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_GGUF_METADATA_H_
