#include "cache/kv_layout.h"

#include <glog/logging.h>

namespace folio {
namespace {

constexpr int64_t kCacheLineBytes = 64;
constexpr int64_t kDwordBytes = 4;

int64_t CheckedProduct(int64_t a, int64_t b) {
  int64_t product;
  CHECK(!__builtin_mul_overflow(a, b, &product))
      << "a KV page of this shape has more than 2^63 bytes";
  return product;
}

int64_t CheckedRoundUp(int64_t size, int64_t step) {
  return CheckedProduct(size / step + (size % step > 0), step);
}

}  // namespace

KvLayout::KvLayout(const KvShape& shape, int32_t page_size)
    : shape_(shape), page_size_(page_size) {
  CHECK_GT(shape.num_layers, 0);
  CHECK_GT(shape.num_kv_heads, 0);
  CHECK_GT(page_size, 0);
  CHECK_GT(shape.head_dim, 0);
  CHECK_GT(shape.bytes_per_element, 0);
  CHECK_GE(shape.scale_bytes, 0);
  row_bytes_ = CheckedRoundUp(
      CheckedProduct(shape.head_dim, shape.bytes_per_element), kDwordBytes);
  // (If the bytes of one row fit into 63 bits, so do those with its scale.)
  part_bytes_ = CheckedRoundUp(
      CheckedProduct(row_bytes_ + shape.scale_bytes, int64_t{2} * page_size),
      kCacheLineBytes);
  CheckedProduct(part_bytes_, num_parts());
}

}  // namespace folio
