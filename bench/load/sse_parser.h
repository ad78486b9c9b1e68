// Messages out of a stream of server-sent events.

#ifndef BENCH_LOAD_SSE_PARSER_H_
#define BENCH_LOAD_SSE_PARSER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace folio {

struct SseMessage {
  std::string type;  // Of its "event" field; empty: "message", the default.
  std::string data;  // Its "data" fields, a line feed between two.
};

// Reads an event stream as the WHATWG's HTML standard defines it, section 9.2.6
// ("Interpreting an event stream"). Bytes may come in pieces of any size. Of
// the fields, "id" and "retry" only matter to who reconnects, and are passed
// over like unknown ones. A message that no empty line ends is none.
//
// Takes time in proportion to the bytes, however they are cut, and keeps those
// that no message was made of yet.
class SseParser {
 public:
  void Append(std::string_view bytes);

  // The next message that is there as a whole.
  std::optional<SseMessage> Next();

 private:
  bool SkipByteOrderMark();
  std::optional<std::string_view> TakeLine();
  void TakeField(std::string_view line);

  std::string bytes_;
  size_t line_start_ = 0;      // In `bytes_`; what is before it is done with.
  size_t searched_ = 0;        // No line ends between its start and here.
  bool is_first_ = true;       // Nothing was taken yet.
  bool after_return_ = false;  // A line feed here belongs to the line before.

  SseMessage message_;  // Of the lines so far; each of data ends in a LF.
};

}  // namespace folio

#endif  // BENCH_LOAD_SSE_PARSER_H_
