// A vector whose elements keep their memory when it is cleared.

#ifndef RUNTIME_BASE_RECYCLED_VECTOR_H_
#define RUNTIME_BASE_RECYCLED_VECTOR_H_

#include <cstddef>
#include <span>
#include <vector>

namespace folio {

// Holds `size()` live elements in front of cleared ones that wait for reuse. A
// steady loop of Clear and Append allocates nothing, whatever T holds inside.
// T needs a default constructor and `void Clear()`, which makes it as good as
// new but keeps its buffers.
template <typename T>
class RecycledVector {
 public:
  // The new element is cleared. References stay valid until the next Append.
  T& Append() {
    if (size_ == slots_.size()) slots_.emplace_back();
    T& slot = slots_[size_++];
    slot.Clear();
    return slot;
  }

  void Clear() { size_ = 0; }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return slots_[i]; }
  const T& operator[](size_t i) const { return slots_[i]; }
  T& back() { return slots_[size_ - 1]; }

  std::span<const T> span() const { return {slots_.data(), size_}; }
  auto begin() const { return span().begin(); }
  auto end() const { return span().end(); }

 private:
  std::vector<T> slots_;
  size_t size_ = 0;
};

}  // namespace folio

#endif  // RUNTIME_BASE_RECYCLED_VECTOR_H_
