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
  int64_t bytes = 2;  // Keys and values.
  for (const int32_t factor :
       {shape.num_layers, shape.num_kv_heads, shape.head_dim,
        shape.bytes_per_element, page_size}) {
    CHECK_GT(factor, 0);
    bytes = CheckedProduct(bytes, factor);
  }
  const int64_t lines = bytes / kCacheLineBytes + (bytes % kCacheLineBytes > 0);
  page_bytes_ = CheckedProduct(lines, kCacheLineBytes);
}

}  // namespace folio
