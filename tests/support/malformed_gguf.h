// GGUF files with one thing wrong in each.

#ifndef TESTS_SUPPORT_MALFORMED_GGUF_H_
#define TESTS_SUPPORT_MALFORMED_GGUF_H_

#include <string>
#include <vector>

namespace folio {

struct MalformedGguf {
  std::string what;
  std::string bytes;
  std::vector<std::string> says;  // Parts of the message.
};

std::vector<MalformedGguf> MalformedGgufs();

// A good file with a value of each type, and tensors of several.
std::string SmallGguf();

}  // namespace folio

#endif  // TESTS_SUPPORT_MALFORMED_GGUF_H_
