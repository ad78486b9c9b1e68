#include "runtime/server/host_port.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/server/quoted.h"

namespace folio {
namespace {

constexpr int kMaxPort = 65535;

// Colons are of IPv6, and then brackets tell them from the one before the port.
bool IsHost(const std::string& host) {
  if (host.empty()) return false;
  if (host.front() == '[' && host.back() == ']') return host.size() > 2;
  return std::none_of(host.begin(), host.end(), [](char c) {
    return c == ':' || c == '/' || c == '[' || c == ']' ||
           absl::ascii_isspace(c) || absl::ascii_iscntrl(c);
  });
}

bool IsPort(const std::string& text, int min_port, int& port) {
  return std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(text, &port) && port >= min_port && port <= kMaxPort;
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(std::string_view address, int min_port) {
  const size_t colon = address.rfind(':');
  if (colon != std::string_view::npos) {
    HostPort parsed{.host = std::string(address.substr(0, colon))};
    const std::string port(address.substr(colon + 1));
    if (IsHost(parsed.host) && IsPort(port, min_port, parsed.port)) {
      return parsed;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the address is ", Quoted(address),
                   "; it must be ADDR:PORT with a port from ", min_port, " to ",
                   kMaxPort, ", such as 127.0.0.1:50051 or [::1]:50051"));
}

}  // namespace folio
