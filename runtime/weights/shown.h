// What a message repeats of a file that nobody has vouched for.

#ifndef RUNTIME_WEIGHTS_SHOWN_H_
#define RUNTIME_WEIGHTS_SHOWN_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace folio {

inline constexpr size_t kMaxShownBytes = 200;

// `text` as it can be printed, wherever it is from: whole UTF-8 characters as
// they are, control characters and bytes that are not UTF-8 as escapes like
// "\x1b". Of more than `max_bytes` only the first, and then "...". Names in
// damaged files have any length and hold anything.
std::string Printable(std::string_view text, size_t max_bytes = kMaxShownBytes);

// The same in single quotes.
std::string Shown(std::string_view text);

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_SHOWN_H_
