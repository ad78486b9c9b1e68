// A client of one Folio server.

#ifndef RUNTIME_CLIENT_CLIENT_H_
#define RUNTIME_CLIENT_CLIENT_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "folio/v1/generation.pb.h"
#include "folio/v1/introspection.pb.h"
#include "runtime/client/client_options.h"

namespace folio {

// Calls block until the server has answered; each may be made from any thread,
// also at the same time. An error is the server's own status, with its message.
class Client {
 public:
  // `address` is "ADDR:PORT". Waits for the connection up to `timeout`;
  // UNAVAILABLE names the address when there is none by then. INVALID_ARGUMENT
  // says what is wrong with the options. Whether the server takes the token,
  // the first call tells.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(
      const std::string& address, absl::Duration timeout,
      const ClientOptions& options = {});
  ~Client();

  // Calls `on_response` for each response, in order, until the stream ends or
  // it returns false, which cancels the request (CANCELLED).
  absl::Status Generate(
      const v1::GenerateRequest& request,
      absl::FunctionRef<bool(const v1::GenerateResponse&)> on_response,
      absl::Time deadline = absl::InfiniteFuture());

  // The server's memory between two steps, now. DEADLINE_EXCEEDED when there is
  // no answer within `timeout`: a step takes longer, or the server hangs.
  absl::StatusOr<v1::BatchReport> GetMemoryReport(
      absl::Duration timeout = absl::Seconds(30));

  // Calls `on_start` when the server has answered the call, and from then on
  // `on_report` for each batch, until it returns false (OK) or the stream
  // breaks. A call that fails may get its `on_start`, too.
  absl::Status WatchBatches(
      absl::FunctionRef<void()> on_start,
      absl::FunctionRef<bool(const v1::BatchReport&)> on_report);

  // OK while the server says that it serves, UNAVAILABLE when it says that it
  // does not.
  absl::Status CheckHealth();

 private:
  struct Stubs;  // Keeps gRPC out of this header.

  explicit Client(std::unique_ptr<Stubs> stubs);

  const std::unique_ptr<Stubs> stubs_;
};

}  // namespace folio

#endif  // RUNTIME_CLIENT_CLIENT_H_
