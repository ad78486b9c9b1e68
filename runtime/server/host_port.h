// Addresses as Folio takes them.

#ifndef RUNTIME_SERVER_HOST_PORT_H_
#define RUNTIME_SERVER_HOST_PORT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace folio {

struct HostPort {
  std::string host;  // A name, an IPv4 address, or an IPv6 one in brackets.
  int port;
};

// Splits "ADDR:PORT"; gRPC itself would take many other things. The port is
// from `min_port` to 65535. INVALID_ARGUMENT quotes `address`, and says what is
// allowed.
absl::StatusOr<HostPort> ParseHostPort(std::string_view address, int min_port);

}  // namespace folio

#endif  // RUNTIME_SERVER_HOST_PORT_H_
