#include "cache/kv_layout.h"

#include <glog/logging.h>

namespace folio {
namespace {

constexpr int64_t kCacheLineBytes = 64;

int64_t CheckedProduct(int64_t a, int64_t b) {
  int64_t product;
  CHECK(!__builtin_mul_overflow(a, b, &product))
      << "a KV page of this shape has more than 2^63 bytes";
  return product;
}

}  // namespace

KvLayout::KvLayout(const KvShape& shape, int32_t page_size)
    : shape_(shape), page_size_(page_size) {
  // (If the bytes of one row fit into 63 bits, so do those with its scale.)
  CHECK_GT(shape.head_dim, 0);
  CHECK_GT(shape.bytes_per_element, 0);
  CHECK_GE(shape.scale_bytes, 0);
  int64_t bytes = CheckedProduct(shape.head_dim, shape.bytes_per_element) +
                  shape.scale_bytes;
  for (const int32_t factor :
       {2 /* K and V */, shape.num_layers, shape.num_kv_heads, page_size}) {
    CHECK_GT(factor, 0);
    bytes = CheckedProduct(bytes, factor);
  }
  const int64_t lines = bytes / kCacheLineBytes + (bytes % kCacheLineBytes > 0);
  page_bytes_ = CheckedProduct(lines, kCacheLineBytes);
}

}  // namespace folio
