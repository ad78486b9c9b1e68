// A server with OpenAI's completions interface: llama.cpp's, vLLM, others.

#ifndef BENCH_LOAD_OPENAI_TARGET_H_
#define BENCH_LOAD_OPENAI_TARGET_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "bench/load/target.h"

namespace folio {

struct OpenAiTargetOptions {
  // Which of the server's models; empty: the one that Describe found, or
  // before that the server's choice.
  std::string model;
  std::string token;  // Sent as a bearer token, where it is not empty.
};

// A target at `address`, "openai://HOST:PORT/PREFIX", by HTTP without
// encryption; most servers want the prefix "v1". A prompt goes as it is: ids as
// an array, text as a string. No proxy is used. Connects only when it must.
//
// OnOutput counts a token for each choice of a message (see CompletionChunk);
// how many it really were, TargetEnd tells, as most servers send their usage.
// One thread serves all requests, and each open one takes a connection; the
// process is let open as many files as it may. Calls must not outlive the
// target.
//
// How a request ends: what StatusOfHttp says of an HTTP error, or of one in the
// stream; UNAVAILABLE when the server can't be reached, or the stream ends
// before "[DONE]" and before each sample had a finish reason; INTERNAL for what
// makes no sense; DEADLINE_EXCEEDED and CANCELLED, which close the connection.
//
// INVALID_ARGUMENT for an address or a token that can't be used.
absl::StatusOr<std::unique_ptr<Target>> OpenOpenAiTarget(
    std::string_view address, const OpenAiTargetOptions& options = {});

}  // namespace folio

#endif  // BENCH_LOAD_OPENAI_TARGET_H_
