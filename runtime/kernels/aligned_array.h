// A fixed-size array of plain numbers on a cache-line boundary.

#ifndef RUNTIME_KERNELS_ALIGNED_ARRAY_H_
#define RUNTIME_KERNELS_ALIGNED_ARRAY_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace folio {

inline constexpr size_t kCacheLineBytes = 64;

// Owns `size` elements, the first of them aligned to kCacheLineBytes. Movable,
// not copyable.
template <typename T>
class AlignedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedArray() = default;
  // All of them 0.
  explicit AlignedArray(size_t size) : AlignedArray(Uninitialised(size)) {
    std::fill_n(data(), size, T{});
  }

  // For what is written as a whole: the weights of a model are so much that
  // writing zeros first is felt.
  static AlignedArray Uninitialised(size_t size) {
    AlignedArray array;
    array.data_.reset(static_cast<T*>(
        ::operator new (size * sizeof(T), std::align_val_t{kCacheLineBytes})));
    array.size_ = size;
    return array;
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::span<T> span() { return {data_.get(), size_}; }
  std::span<const T> span() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(T* data) const {
      ::operator delete (data, std::align_val_t{kCacheLineBytes});
    }
  };
  std::unique_ptr<T[], Free> data_;
  size_t size_ = 0;
};

}  // namespace folio

#endif  // RUNTIME_KERNELS_ALIGNED_ARRAY_H_
