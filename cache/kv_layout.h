// How many bytes keys and values take, and where in a page each of them lies.

#ifndef CACHE_KV_LAYOUT_H_
#define CACHE_KV_LAYOUT_H_

#include <cstdint>

namespace folio {

// The K/V a model keeps for each token.
struct KvShape {
  int32_t num_layers = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t bytes_per_element = 4;
  // Of the scale that each token, layer and KV head has for K, and for V: 4
  // (a float) when elements are int8, else 0.
  int32_t scale_bytes = 0;

  // The design's formula for one token: 2 (K and V) x layers x KV heads x
  // head_dim x bytes_per_element.
  int64_t BytesPerToken() const {
    return int64_t{2} * num_layers * num_kv_heads * head_dim *
           bytes_per_element;
  }

  // Scales of one token, which the formula leaves out.
  int64_t ScaleBytesPerToken() const {
    return int64_t{2} * num_layers * num_kv_heads * scale_bytes;
  }

  // The whole formula, for `batch_size` sequences of `sequence_length` tokens.
  // (32 layers, 32 KV heads, head_dim 128, 2 bytes, 1 x 4096: exactly 2 GiB.)
  int64_t Bytes(int64_t batch_size, int64_t sequence_length) const {
    return batch_size * sequence_length * BytesPerToken();
  }
};

// The bytes of a page: a part for each layer and KV head,
//
//   [K|V]           an array of the rows of page_size tokens
//   [K|V][slot]     scales, if there are any
//   padding
//
// A row has head_dim elements, and in an array takes whole dwords; how rows lie
// in it is up to whoever writes and reads them. Parts are padded to whole cache
// lines (64 bytes), so that no two share one.
class KvLayout {
 public:
  // REQUIRES: every number of `shape` and page_size is positive (scale_bytes
  // may be 0), and the bytes of a page fit into 63 bits.
  KvLayout(const KvShape& shape, int32_t page_size);

  const KvShape& shape() const { return shape_; }
  int32_t page_size() const { return page_size_; }  // In token slots.

  // page_bytes() == num_parts() * part_bytes() ==
  //     shape().BytesPerToken() * page_size() + scale_bytes() + padding_bytes()
  int64_t page_bytes() const { return num_parts() * part_bytes_; }
  int64_t part_bytes() const { return part_bytes_; }
  int64_t num_parts() const {
    return int64_t{shape_.num_layers} * shape_.num_kv_heads;
  }
  int64_t scale_bytes() const {
    return shape_.ScaleBytesPerToken() * page_size_;
  }
  int64_t padding_bytes() const {
    return page_bytes() - shape_.BytesPerToken() * page_size_ - scale_bytes();
  }

  // Byte offset in a part of K's array, and of V's.
  int64_t KeyOffset() const { return 0; }
  int64_t ValueOffset() const { return ArrayBytes(); }

  // The same of their scales: arrays [page_size]. REQUIRES: there are some.
  int64_t KeyScaleOffset() const { return 2 * ArrayBytes(); }
  int64_t ValueScaleOffset() const {
    return KeyScaleOffset() + int64_t{page_size_} * shape_.scale_bytes;
  }

  // Pages that `num_tokens` tokens need. REQUIRES: num_tokens >= 0.
  int64_t PagesFor(int64_t num_tokens) const {
    return num_tokens / page_size_ + (num_tokens % page_size_ > 0 ? 1 : 0);
  }

 private:
  int64_t ArrayBytes() const { return page_size_ * row_bytes_; }

  KvShape shape_;
  int32_t page_size_;
  int64_t row_bytes_;
  int64_t part_bytes_;
};

}  // namespace folio

#endif  // CACHE_KV_LAYOUT_H_
