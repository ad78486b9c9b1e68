// The server that --server names.

#ifndef RUNTIME_CLI_CONNECT_H_
#define RUNTIME_CLI_CONNECT_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/base/status_macros.h"
#include "runtime/cli/security_flags.h"
#include "runtime/client/client.h"
#include "runtime/server/finish_status.h"

namespace folio {

// UNAVAILABLE, naming the address, when nobody answers in time; otherwise the
// errors of ClientOptionsOf.
inline absl::StatusOr<std::unique_ptr<Client>> ConnectTo(
    const std::string& server, const ClientSecurityFlags& security) {
  FOLIO_ASSIGN_OR_RETURN(const ClientOptions options,
                         ClientOptionsOf(security, server));
  return Client::Connect(server, /*timeout=*/absl::Seconds(5), options);
}

// Whether a server says with `status` that it ends, as it should.
inline bool IsShutdown(const absl::Status& status) {
  return status == StatusOfFinish(FinishReason::kShutdown);
}

// The status of a call to `server`. Where the connection broke, gRPC's own
// words become an error that says so; `consequence` goes into it.
inline absl::Status ExplainBroken(const absl::Status& status,
                                  const std::string& server,
                                  std::string_view consequence = "") {
  if (!absl::IsUnavailable(status) || IsShutdown(status)) return status;
  return absl::UnavailableError(absl::StrCat(
      "the connection to ", server, " broke (", status.message(), "); ",
      std::string(consequence), "check that the server still runs"));
}

inline constexpr std::string_view kIncomplete =
    "the output above is incomplete; ";

}  // namespace folio

#endif  // RUNTIME_CLI_CONNECT_H_
