#include "bench/load/sse_parser.h"

#include <utility>

namespace folio {

void SseParser::Append(std::string_view bytes) {
  bytes_.erase(0, line_start_);
  searched_ -= line_start_;
  line_start_ = 0;
  bytes_.append(bytes);
}

std::optional<SseMessage> SseParser::Next() {
  if (!SkipByteOrderMark()) return std::nullopt;
  while (const std::optional<std::string_view> line = TakeLine()) {
    if (!line->empty()) {
      TakeField(*line);
      continue;
    }
    SseMessage message = std::exchange(message_, {});
    if (message.data.empty()) continue;  // No "data" field: each adds a LF.
    message.data.pop_back();
    return message;
  }
  return std::nullopt;
}

// True once it is clear whether there is one.
bool SseParser::SkipByteOrderMark() {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (!is_first_) return true;
  if (bytes_.size() < kMark.size() && kMark.starts_with(bytes_)) return false;
  is_first_ = false;
  if (bytes_.starts_with(kMark)) line_start_ = searched_ = kMark.size();
  return true;
}

// The next whole line, without its end, which is CR, LF or CRLF. Valid until
// the next Append.
std::optional<std::string_view> SseParser::TakeLine() {
  if (line_start_ == bytes_.size()) return std::nullopt;
  if (std::exchange(after_return_, false) && bytes_[line_start_] == '\n') {
    searched_ = ++line_start_;
  }
  const size_t end = bytes_.find_first_of("\r\n", searched_);
  if (end == std::string::npos) {
    searched_ = bytes_.size();
    return std::nullopt;
  }
  after_return_ = bytes_[end] == '\r';
  const std::string_view line =
      std::string_view(bytes_).substr(line_start_, end - line_start_);
  searched_ = line_start_ = end + 1;
  return line;
}

void SseParser::TakeField(std::string_view line) {
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);  // A comment has none.
  std::string_view value;
  if (colon != line.npos) value = line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") {
    message_.type = value;
  } else if (field == "data") {
    message_.data.append(value).push_back('\n');
  }
}

}  // namespace folio
