// Text of others on a terminal of ours.

#ifndef RUNTIME_CLI_VISIBLE_TEXT_H_
#define RUNTIME_CLI_VISIBLE_TEXT_H_

#include <string>
#include <string_view>

namespace folio {

// `text` without what could move the cursor or worse: control characters
// (U+0000 to U+001F, U+007F to U+009F) and bytes that are no UTF-8 are written
// as \x1b, a byte each. All of `text` is on one line then, unless characters of
// `keep` stay as they are.
std::string WithVisibleControls(std::string_view text,
                                std::string_view keep = "");

}  // namespace folio

#endif  // RUNTIME_CLI_VISIBLE_TEXT_H_
