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

// The inside of one page, contiguous over all layers:
//
//   [layer][K|V][kv_head][slot][head_dim]      elements
//   [layer][K|V][kv_head][slot]                scales, if there are any
//   padding
//
// so that copying, spilling or handing over a page is one memcpy, and the rows
// that one attention head reads are neighbours. Scales need not be aligned.
// Pages are padded to whole cache lines (64 bytes), so that no two pages share
// one.
class KvLayout {
 public:
  // REQUIRES: every number of `shape` and page_size is positive (scale_bytes
  // may be 0), and the bytes of a page fit into 63 bits.
  KvLayout(const KvShape& shape, int32_t page_size);

  const KvShape& shape() const { return shape_; }
  int32_t page_size() const { return page_size_; }  // In token slots.

  // page_bytes() ==
  //     shape().BytesPerToken() * page_size() + scale_bytes() + padding_bytes()
  int64_t page_bytes() const { return page_bytes_; }
  int64_t scale_bytes() const {
    return shape_.ScaleBytesPerToken() * page_size_;
  }
  int64_t padding_bytes() const {
    return page_bytes_ - shape_.BytesPerToken() * page_size_ - scale_bytes();
  }

  // Byte offset in a page of K (or V) of one layer and head: an array
  // [page_size][head_dim] of elements.
  int64_t KeyOffset(int32_t layer, int32_t kv_head) const {
    return Offset(layer, 0, kv_head);
  }
  int64_t ValueOffset(int32_t layer, int32_t kv_head) const {
    return Offset(layer, 1, kv_head);
  }

  // The same of their scales: an array [page_size]. REQUIRES: there are some.
  int64_t KeyScaleOffset(int32_t layer, int32_t kv_head) const {
    return ScaleOffset(layer, 0, kv_head);
  }
  int64_t ValueScaleOffset(int32_t layer, int32_t kv_head) const {
    return ScaleOffset(layer, 1, kv_head);
  }

  // Pages that `num_tokens` tokens need. REQUIRES: num_tokens >= 0.
  int64_t PagesFor(int64_t num_tokens) const {
    return num_tokens / page_size_ + (num_tokens % page_size_ > 0 ? 1 : 0);
  }

 private:
  // Slots before those of a layer, K or V, and head.
  int64_t SlotsBefore(int32_t layer, int32_t kind, int32_t kv_head) const {
    return ((int64_t{layer} * 2 + kind) * shape_.num_kv_heads + kv_head) *
           page_size_;
  }
  int64_t Offset(int32_t layer, int32_t kind, int32_t kv_head) const {
    return SlotsBefore(layer, kind, kv_head) * shape_.head_dim *
           shape_.bytes_per_element;
  }
  int64_t ScaleOffset(int32_t layer, int32_t kind, int32_t kv_head) const {
    return shape_.BytesPerToken() * page_size_ +
           SlotsBefore(layer, kind, kv_head) * shape_.scale_bytes;
  }

  KvShape shape_;
  int32_t page_size_;
  int64_t page_bytes_;
};

}  // namespace folio

#endif  // CACHE_KV_LAYOUT_H_
