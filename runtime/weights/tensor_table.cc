#include "runtime/weights/tensor_table.h"

#include <glog/logging.h>

namespace folio {

const DTypeInfo& InfoOf(DType dtype) {
  // In the order of DType.
  static constexpr DTypeInfo kInfo[] = {
      {"F32", 1, 4},      {"F16", 1, 2},      {"BF16", 1, 2},
      {"Q8_0", 32, 34},   {"Q4_0", 32, 18},   {"Q4_1", 32, 20},
      {"Q5_0", 32, 22},   {"Q5_1", 32, 24},   {"Q2_K", 256, 84},
      {"Q3_K", 256, 110}, {"Q4_K", 256, 144}, {"Q5_K", 256, 176},
      {"Q6_K", 256, 210},
  };
  static_assert(std::size(kInfo) == static_cast<size_t>(DType::kQ6_K) + 1);
  const auto index = static_cast<size_t>(dtype);
  CHECK_LT(index, std::size(kInfo)) << "not a DType";
  return kInfo[index];
}

}  // namespace folio
