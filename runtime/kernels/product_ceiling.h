// The fastest that this machine multiplies and reads, to compare a model with.

#ifndef RUNTIME_KERNELS_PRODUCT_CEILING_H_
#define RUNTIME_KERNELS_PRODUCT_CEILING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/executor.h"
#include "runtime/kernels/aligned_array.h"

namespace folio {

// What the factors of a product are.
enum class CeilingType { kF32, kBf16, kInt8, kInt4 };

// The type of weights that is called f32, bf16, int8 or int4; else nothing.
std::optional<CeilingType> CeilingTypeOf(std::string_view name);

// x [rows, in] times weights [in, out].
struct ProductShape {
  int32_t in = 0;
  int32_t out = 0;
};

// How long the matrix products of a model take, and nothing else of it: a lower
// bound of the time of a step.
//
// Each product of each layer has weights of its own (of any value: that does
// not change the time), packed once as oneDNN likes them best, so that caches
// hold as little of them as they do in a model. oneDNN is called directly.
// Workers compute a slice of the columns each, with a dense destination, which
// is as fast as oneDNN's own threads are.
//
//   f32   f32 * f32 -> f32
//   bf16  bf16 * bf16 -> f32
//   int8  s8 * s8 -> f32, with a scale for each column
//   int4  oneDNN has none. No product is faster than reading its weights, at
//         4.5 bits each (a group of 32 shares 16 bits of scale), and no row
//         faster than one of 512 of the int8 product.
class ProductCeiling {
 public:
  // Memory: that of the weights, int4's in int8. The executor must outlive the
  // object; its workers are those that multiply.
  ProductCeiling(const std::vector<ProductShape>& layer, int32_t num_layers,
                 ProductShape head, CeilingType type, Executor* executor);
  ~ProductCeiling();

  // Whether oneDNN multiplies the type on this machine.
  static bool IsPossible(CeilingType type);

  // Runs the products of all layers, or the head, once for `rows` rows and
  // returns the seconds that took (of int4: that it has to take at least, with
  // weights read at `read_bandwidth` bytes a second). In the last layer only
  // the first product, which has K and V, is for all of them; the others are
  // for `last_rows`, those with logits. The first time with a row count
  // prepares its kernels, and is not slower for that.
  // REQUIRES: rows >= 1; last_rows >= 0.
  double LayersSeconds(int32_t rows, int32_t last_rows, double read_bandwidth);
  double HeadSeconds(int32_t rows, double read_bandwidth);

 private:
  class Product;

  // Layers [first, first + count).
  struct Layers {
    int32_t first;
    int32_t count;
  };

  double Seconds(std::span<Product* const> products, Layers layers,
                 int32_t rows, double read_bandwidth);

  const CeilingType type_;
  std::vector<std::unique_ptr<Product>> layer_;
  std::unique_ptr<Product> head_;
};

// How long all workers together take to read a buffer far larger than caches.
class ReadCeiling {
 public:
  // Memory: bytes(), in use from now on. The executor must outlive the object.
  explicit ReadCeiling(Executor* executor);

  int64_t bytes() const {
    return static_cast<int64_t>(buffer_.size() * sizeof(uint64_t));
  }

  // Reads all of it once.
  double Seconds();

 private:
  Executor* const executor_;
  AlignedArray<uint64_t> buffer_;
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_PRODUCT_CEILING_H_
