#include "runtime/weights/model_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/touch.h"
#include "tests/support/bytes.h"
#include "tests/support/safetensors_builder.h"

namespace folio {
namespace {

// The index is the input; the shards are these.
absl::StatusOr<TensorTable> ReadTensors(const uint8_t* data, size_t size) {
  static const auto* const one = new std::string(
      SafetensorsBuilder().AddF32("a", {1}, {1}).AddF32("b", {1}, {2}).Build());
  static const auto* const two =
      new std::string(SafetensorsBuilder().AddF32("c", {1}, {3}).Build());
  return ModelFiles::InMemory(std::string(kFuzzFile),
                              {{"model.safetensors.index.json",
                                std::as_bytes(std::span(data, size))},
                               {"1", AsBytes(*one)},
                               {"2", AsBytes(*two)}})
      .ReadTensors();
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  return {
      R"({"metadata":{},"weight_map":{"a":"1","b":"1","c":"2"}})",
      R"({"weight_map":{"a":"1","b":"2","c":"2"}})",
      R"({"weight_map":{"a":"1","b":"1"}})",
      R"({"weight_map":{"a":"1","b":"1","d":"1"}})",
      R"({"weight_map":{"a":"../1","b":"/1","c":""}})",
      R"({"weight_map":{"c":"3"}})",
      R"({"weight_map":{}})",
  };
}

}  // namespace folio

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto table = folio::ReadTensors(data, size);
  if (table.ok()) {
    folio::TouchTensors(*table);
  } else if (absl::IsNotFound(table.status())) {
    // A shard that there is not.
  } else {
    folio::CheckRefusal(table.status());
  }
  return 0;
}
