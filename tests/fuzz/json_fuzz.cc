#include <glog/logging.h>

#include "runtime/weights/json_file.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/touch.h"

namespace folio {

std::vector<std::string> FuzzSeeds() {
  return {
      "null",
      "[]",
      " {} ",
      R"([1, -2.5e3, true, false, null, "\u20ac\n", 18446744073709551615])",
      R"({"a": {"a": 1, "b": [{"a": 2}, {"a": 3}]}, "b": {"a": 4}, "c": []})",
      R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 576,)"
      R"( "rope_scaling": null, "rms_norm_eps": 1e-05})",
      R"({"a": 1, "\u0061": 2})",
      std::string(70, '['),
      "{\"\xFF\": 1}",
  };
}

}  // namespace folio

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto document = folio::ParseJson(*folio::FuzzFile(data, size));
  if (!document.ok()) {
    folio::CheckRefusal(document.status());
    return 0;
  }
  CHECK_LE(folio::ShownJson(*document).size(), 100u);
  // What was read is a document, and reads the same again.
  const auto again = folio::ParseJson(document->dump(), "again");
  CHECK(again.ok()) << again.status();
  CHECK(*again == *document);
  return 0;
}
