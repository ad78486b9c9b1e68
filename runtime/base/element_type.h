// The types of numbers that Folio computes with.

#ifndef RUNTIME_BASE_ELEMENT_TYPE_H_
#define RUNTIME_BASE_ELEMENT_TYPE_H_

#include <cstdint>
#include <string_view>

namespace folio {

// What weights, the activations that meet them in a product, and K/V are kept
// in. Sums are f32 in either case.
enum class ElementType { kF32, kBf16 };

constexpr int32_t BytesOf(ElementType type) {
  return type == ElementType::kF32 ? 4 : 2;
}

constexpr std::string_view NameOf(ElementType type) {
  return type == ElementType::kF32 ? "f32" : "bf16";
}

}  // namespace folio

#endif  // RUNTIME_BASE_ELEMENT_TYPE_H_
