// The types of numbers that Folio computes with.

#ifndef RUNTIME_BASE_ELEMENT_TYPE_H_
#define RUNTIME_BASE_ELEMENT_TYPE_H_

#include <cstdint>
#include <string_view>

namespace folio {

// What weights, the activations that meet them in a product, and K/V are kept
// in. int8 has scales beside it: of weights one for each output channel, of
// activations one for each token, of K/V one for each token and head. int4 is
// for weights alone, with a scale for each 32 of one output channel; it meets
// activations of int8. Sums are f32, or exact integers.
enum class ElementType { kF32, kBf16, kInt8, kInt4 };

constexpr int32_t BitsOf(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return 32;
    case ElementType::kBf16:
      return 16;
    case ElementType::kInt8:
      return 8;
    case ElementType::kInt4:
      return 4;
  }
  return 0;
}

// REQUIRES: not kInt4, of which there are two in a byte.
constexpr int32_t BytesOf(ElementType type) { return BitsOf(type) / 8; }

// Of the scale beside each row of K or V that one token and head has.
constexpr int32_t KvScaleBytesOf(ElementType type) {
  return type == ElementType::kInt8 ? int32_t{sizeof(float)} : 0;
}

constexpr std::string_view NameOf(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return "f32";
    case ElementType::kBf16:
      return "bf16";
    case ElementType::kInt8:
      return "int8";
    case ElementType::kInt4:
      return "int4";
  }
  return "";
}

constexpr bool IsInteger(ElementType type) {
  return type == ElementType::kInt8 || type == ElementType::kInt4;
}

// What a row of activations is rounded to before it meets weights of `weights`.
constexpr ElementType ActivationTypeFor(ElementType weights) {
  return weights == ElementType::kInt4 ? ElementType::kInt8 : weights;
}

}  // namespace folio

#endif  // RUNTIME_BASE_ELEMENT_TYPE_H_
