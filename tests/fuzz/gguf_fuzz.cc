#include <glog/logging.h>

#include "runtime/weights/gguf.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/touch.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/malformed_gguf.h"

namespace folio {
namespace {

void TouchMetadata(const GgufFile& file) {
  for (const std::string_view key : file.keys()) {
    CHECK(file.Has(key));
    const auto string = file.String(key);
    const auto strings = file.Strings(key);
    const auto number = file.Number(key);
    const auto numbers = file.Numbers(key);
    const auto integer = file.Integer(key);
    const auto integers = file.Integers(key);
    const auto boolean = file.Bool(key);
    // At most an integer is two things at once, itself and a number.
    CHECK_LE(
        string.ok() + strings.ok() + number.ok() + numbers.ok() + boolean.ok(),
        1);
    CHECK(!integer.ok() || number.ok());
    CHECK(!integers.ok() || numbers.ok());
    for (const absl::Status& status :
         {string.status(), strings.status(), number.status(), numbers.status(),
          integer.status(), integers.status(), boolean.status()}) {
      if (!status.ok()) CheckRefusal(status);
    }
  }
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  std::vector<std::string> seeds = {
      SmallGguf(), GgufBuilder().Build(),
      GgufBuilder(2).SetAlignment(8).AddF32("t", {2, 1}, {1, 2}).Build()};
  for (const DType dtype :
       {DType::kF16, DType::kQ8_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
        DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K}) {
    const DTypeInfo& info = InfoOf(dtype);
    seeds.push_back(GgufBuilder()
                        .AddTensor("t", dtype, {1, info.block_elements},
                                   std::string(info.block_bytes, '\x35'))
                        .Build());
  }
  for (MalformedGguf& malformed : MalformedGgufs()) {
    seeds.push_back(std::move(malformed.bytes));
  }
  return seeds;
}

}  // namespace folio

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = folio::GgufFile::Parse(folio::FuzzFile(data, size));
  if (!file.ok()) {
    folio::CheckRefusal(file.status());
    return 0;
  }
  folio::TouchMetadata(**file);
  folio::TouchTensors((*file)->tensors());
  return 0;
}
