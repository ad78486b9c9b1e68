// Output that can fail: std::cout of one command.

#ifndef RUNTIME_CLI_STDOUT_WRITER_H_
#define RUNTIME_CLI_STDOUT_WRITER_H_

#include <array>
#include <streambuf>

#include "absl/status/status.h"

namespace folio {

// While one lives, std::cout writes through it to the process's stdout, and the
// reason of the first write that failed is kept. From then on std::cout.good()
// is false, and nothing more is written: a command that goes on for long asks
// for it, and ends.
class StdoutWriter : public std::streambuf {
 public:
  StdoutWriter();
  ~StdoutWriter() override;

  StdoutWriter(const StdoutWriter&) = delete;
  StdoutWriter& operator=(const StdoutWriter&) = delete;

  // Writes what is still held back. An error says why not everything that was
  // put into std::cout has been written.
  absl::Status Flush();

 protected:
  int_type overflow(int_type next) override;
  int sync() override;

 private:
  bool WriteBuffer();

  std::array<char, 8192> buffer_;
  std::streambuf* const before_;
  int error_ = 0;  // errno of the first write that failed.
};

}  // namespace folio

#endif  // RUNTIME_CLI_STDOUT_WRITER_H_
