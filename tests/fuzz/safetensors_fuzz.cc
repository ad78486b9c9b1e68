#include "runtime/weights/safetensors.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/touch.h"
#include "tests/support/safetensors_builder.h"

namespace folio {

std::vector<std::string> FuzzSeeds() {
  return {
      SafetensorsOf("{}", ""),
      SafetensorsBuilder().AddF32("weight", {2, 3}, {1, 2, 3, 4, 5, 6}).Build(),
      SafetensorsOf(
          R"({"__metadata__":{"format":"pt"},)"
          R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]},)"
          R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
          R"("none":{"dtype":"F32","shape":[0,7],"data_offsets":[8,8]},)"
          R"("mask":{"dtype":"BOOL","shape":[3],"data_offsets":[12,15]}})",
          "123456789012345"),
      SafetensorsOf(R"({"h":{"dtype":"F16","shape":[],"data_offsets":[0,2]}})",
                    "12"),
      SafetensorsOf(R"({"t":{"dtype":"F32","shape":[4611686018427387904,4],)"
                    R"("data_offsets":[0,16]}})",
                    "1234567890123456"),
  };
}

}  // namespace folio

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto table = folio::ReadSafetensors(folio::FuzzFile(data, size));
  if (table.ok()) {
    folio::TouchTensors(*table);
  } else {
    folio::CheckRefusal(table.status());
  }
  return 0;
}
