#include "runtime/cli/stdout_writer.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include "absl/strings/str_cat.h"

namespace folio {

StdoutWriter::StdoutWriter() : before_(std::cout.rdbuf(this)) {
  setp(buffer_.data(), buffer_.data() + buffer_.size());
}

StdoutWriter::~StdoutWriter() {
  WriteBuffer();
  std::cout.rdbuf(before_);  // It clears the stream's state, too.
}

absl::Status StdoutWriter::Flush() {
  std::cout.flush();
  if (error_ == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("can't write to stdout: ", std::strerror(error_)));
}

StdoutWriter::int_type StdoutWriter::overflow(int_type next) {
  if (!WriteBuffer()) return traits_type::eof();
  if (traits_type::eq_int_type(next, traits_type::eof())) {
    return traits_type::not_eof(next);
  }
  return sputc(traits_type::to_char_type(next));
}

int StdoutWriter::sync() { return WriteBuffer() ? 0 : -1; }

bool StdoutWriter::WriteBuffer() {
  const char* begin = pbase();
  while (error_ == 0 && begin < pptr()) {
    const ssize_t written = write(STDOUT_FILENO, begin, pptr() - begin);
    if (written >= 0) {
      begin += written;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return error_ == 0;
}

}  // namespace folio
