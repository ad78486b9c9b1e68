// Blocks of GGUF's quantised types as floats.

#ifndef RUNTIME_WEIGHTS_DEQUANTISE_H_
#define RUNTIME_WEIGHTS_DEQUANTISE_H_

#include <cstddef>
#include <cstring>
#include <span>

namespace folio {

// Decodes out.size() elements from the whole blocks at `blocks`, which need not
// be aligned. The formats are those of ggml
// (https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h).
void DequantiseQ8_0(const std::byte* blocks, std::span<float> out);
void DequantiseQ4_0(const std::byte* blocks, std::span<float> out);
void DequantiseQ4_1(const std::byte* blocks, std::span<float> out);
void DequantiseQ5_0(const std::byte* blocks, std::span<float> out);
void DequantiseQ5_1(const std::byte* blocks, std::span<float> out);
void DequantiseQ2_K(const std::byte* blocks, std::span<float> out);
void DequantiseQ3_K(const std::byte* blocks, std::span<float> out);
void DequantiseQ4_K(const std::byte* blocks, std::span<float> out);
void DequantiseQ5_K(const std::byte* blocks, std::span<float> out);
void DequantiseQ6_K(const std::byte* blocks, std::span<float> out);

// Calls decode(block, floats) for each Block, whose floats are kElements apart.
template <typename Block, int kElements>
void ForEachBlock(const std::byte* blocks, std::span<float> out,
                  void (*decode)(const Block&, float*)) {
  static_assert(alignof(Block) == 1);  // Has no padding either.
  for (size_t at = 0; at < out.size(); at += kElements) {
    Block block;
    std::memcpy(&block, blocks, sizeof(Block));
    blocks += sizeof(Block);
    decode(block, out.data() + at);
  }
}

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_DEQUANTISE_H_
