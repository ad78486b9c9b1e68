// One line for each request that has ended.

#ifndef RUNTIME_SERVER_REQUEST_LOG_H_
#define RUNTIME_SERVER_REQUEST_LOG_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/server/request_facts.h"
#include "scheduler/token_event.h"

namespace folio {

struct RequestLogOptions {
  std::string path;  // "-": stderr.
  bool prompts = false;
};

// Appends JSON objects, each on a line of its own:
//
//   time                            of the end, RFC 3339, UTC
//   request_id, tenant, model, n
//   finish_reason                   as in folio:request_success_total
//   status                          what the call ended with: "OK", ...
//   prompt_tokens, cached_tokens, generated_tokens, preemptions, peak_pages
//   queue_ms, prefill_ms, decode_ms, e2e_ms
//   ttft_ms                         null: it got no token
//   prompt                          only when asked for
//
// Each line is one write, so that several processes may share a file. A file
// that is moved away is still written to; logrotate has copytruncate for that.
// Used by one thread.
class RequestLog {
 public:
  // Opens the file and makes it where it is missing, for its owner to write and
  // the group to read. An error names it.
  static absl::StatusOr<std::unique_ptr<RequestLog>> Open(
      const RequestLogOptions& options, std::string model_name);

  ~RequestLog();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  // REQUIRES: terminal.terminal. `end` is when that was handed out. What can't
  // be written at once is lost; the first time, an error is logged. Leaves
  // SIGPIPE blocked in the calling thread. A pipe that is full holds the caller
  // up.
  void Write(const RequestFacts& request, const TokenEvent& terminal,
             absl::Time end);

  // Whether lines have prompts: else nobody needs to keep them.
  bool has_prompts() const { return options_.prompts; }

 private:
  RequestLog(const RequestLogOptions& options, std::string model_name,
             int descriptor);

  const RequestLogOptions options_;
  const std::string model_name_;
  const int descriptor_;
  bool failed_ = false;  // Ever, and so it was logged.
  bool last_failed_ = false;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_REQUEST_LOG_H_
