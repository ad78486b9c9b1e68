// Whether this is a sanitizer's build, which is many times slower.

#ifndef TESTS_SUPPORT_SANITIZED_H_
#define TESTS_SUPPORT_SANITIZED_H_

namespace folio {

// Tests of much of the same may then do with less of it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace folio

#endif  // TESTS_SUPPORT_SANITIZED_H_
