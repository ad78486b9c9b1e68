// Who may talk to a server, and how it proves to be the right one.

#ifndef RUNTIME_SERVER_SECURITY_OPTIONS_H_
#define RUNTIME_SERVER_SECURITY_OPTIONS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace folio {

// Paths of files; an empty one: not given. Each is read again when it changes.
struct SecurityOptions {
  std::string tls_cert;       // PEM: the server's certificate, then its chain.
  std::string tls_key;        // PEM: the private key of tls_cert, unencrypted.
  std::string tls_client_ca;  // PEM: who signs the certificates that clients
                              // must have.
  std::string token_file;     // What TokenTable reads.
  // Serve on any address, though anybody may call or listen in.
  bool insecure = false;

  bool has_tls() const { return !tls_cert.empty(); }
  bool authenticates() const {
    return !tls_client_ca.empty() || !token_file.empty();
  }
};

// Whether only processes of this machine reach a server that listens on `host`:
// 127.0.0.0/8, ::1 (in brackets or not), localhost, or a unix socket
// ("unix:..."). Other names are not looked up, and so are not.
bool IsLoopback(std::string_view host);

// INVALID_ARGUMENT, in terms of the flags of `folio serve`, when the options do
// not fit together, or when the server would be open to the network: off
// loopback it needs TLS, and clients that authenticate themselves by a
// certificate or a token, unless `insecure` says that it does not.
absl::Status CheckSecurity(const SecurityOptions& options,
                           std::string_view host);

}  // namespace folio

#endif  // RUNTIME_SERVER_SECURITY_OPTIONS_H_
