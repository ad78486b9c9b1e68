// Numbers as files have them.

#ifndef TESTS_SUPPORT_BYTES_H_
#define TESTS_SUPPORT_BYTES_H_

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace folio {

// `number` as this machine stores it, which is little-endian.
template <typename T>
requires std::is_arithmetic_v<T> std::string BytesOf(T number) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &number, sizeof(T));
  return bytes;
}

template <typename T>
requires std::is_arithmetic_v<T> std::string BytesOf(
    const std::vector<T>& numbers) {
  std::string bytes;
  for (const T number : numbers) bytes += BytesOf(number);
  return bytes;
}

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace folio

#endif  // TESTS_SUPPORT_BYTES_H_
