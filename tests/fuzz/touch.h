// What fuzz targets have in common.

#ifndef TESTS_FUZZ_TOUCH_H_
#define TESTS_FUZZ_TOUCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "runtime/weights/mapped_file.h"
#include "runtime/weights/tensor_table.h"

namespace folio {

// How fuzz targets call the file that they parse.
inline constexpr std::string_view kFuzzFile = "folder/input";

// The input as a file.
std::shared_ptr<const MappedFile> FuzzFile(const uint8_t* data, size_t size);

// CHECKs that a refusal is INVALID_ARGUMENT, names the file, and can be printed
// and sent: UTF-8 of at most a few kilobytes.
void CheckRefusal(const absl::Status& status);

// Reads every byte of every tensor, and converts those that are not huge.
void TouchTensors(const TensorTable& table);

}  // namespace folio

#endif  // TESTS_FUZZ_TOUCH_H_
