// Many HTTP requests at once, on one thread.

#ifndef BENCH_LOAD_HTTP_STREAMS_H_
#define BENCH_LOAD_HTTP_STREAMS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace folio {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // "Name: value".
  std::optional<std::string> body;   // With one it is a POST, else a GET.
  absl::Time deadline = absl::InfiniteFuture();
};

// What comes before the body of an answer.
struct HttpHead {
  int status = 0;  // 0: no answer came.
  std::string content_type;
  std::string server;
};

// Gets one answer. All calls are on the thread of the streams, which serves all
// others, too: they must be short.
class HttpReceiver {
 public:
  virtual ~HttpReceiver() = default;

  // Takes the next bytes of the body, and returns until when it wants no more:
  // InfinitePast to go on at once. At that time it is called again, with no
  // bytes. Until it goes on, no more is read from the connection than was, so
  // that the server gets to feel it. An error breaks the request off.
  virtual absl::StatusOr<absl::Time> OnBody(const HttpHead& head,
                                            std::string_view bytes) = 0;

  // The last call. OK: the answer came as a whole, of whatever status. Else
  // the error of OnBody; DEADLINE_EXCEEDED; CANCELLED; or UNAVAILABLE with the
  // reason, when there was no connection or it broke.
  virtual void OnEnd(const HttpHead& head, absl::Status status) = 0;
};

// Sends requests by HTTP/1.1, without encryption or a proxy. Each open request
// takes a connection, and so a file descriptor. Connections are used again; a
// request on such a one that the server closes without a word is sent once more
// on another, because the server may have closed it before that came. Of time
// limits there are the deadlines, and 10 seconds to connect.
class HttpStreams {
 public:
  // Lets the process open as many files as it may.
  static std::unique_ptr<HttpStreams> Create();
  // Forgets, without a call, requests that have not ended.
  virtual ~HttpStreams() = default;

  // Returns at once; the receiver is destroyed after its last call. Returns a
  // name for Cancel. Thread-safe.
  virtual uint64_t Start(HttpRequest request,
                         std::unique_ptr<HttpReceiver> receiver) = 0;

  // Ends a request with CANCELLED soon, and closes its connection. Without
  // effect after its end. Thread-safe.
  virtual void Cancel(uint64_t request) = 0;

  // Whether the caller is the thread of the streams.
  virtual bool IsOwnThread() const = 0;
};

}  // namespace folio

#endif  // BENCH_LOAD_HTTP_STREAMS_H_
