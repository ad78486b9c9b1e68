// What a message repeats of a client's input.

#ifndef RUNTIME_SERVER_QUOTED_H_
#define RUNTIME_SERVER_QUOTED_H_

#include <string>
#include <string_view>

namespace folio {

// `text` in single quotes. Of more than 100 bytes only the whole characters
// among the first 100, and then "...": a status travels in the metadata of a
// call, which clients limit to a few KiB.
std::string Quoted(std::string_view text);

}  // namespace folio

#endif  // RUNTIME_SERVER_QUOTED_H_
