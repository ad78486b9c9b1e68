// What a server's port shows to its clients, and wants to be shown.

#ifndef RUNTIME_SERVER_SERVER_CREDENTIALS_H_
#define RUNTIME_SERVER_SERVER_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/server/security_options.h"

namespace folio {

// Insecure ones without options.tls_cert. With it TLS, and with tls_client_ca,
// only for clients that have a certificate of it. INVALID_ARGUMENT, or the
// status of a file that can't be read, names the file and what is wrong.
//
// Each new connection gets the files as they are then. A change that can't work
// (a half-written file, a key that does not match its certificate yet) is
// logged, and what was in force stays so until the files change again.
// Connections that are open stay open.
//
// May serve several ports and servers, and need not outlive them.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const SecurityOptions& options);

}  // namespace folio

#endif  // RUNTIME_SERVER_SERVER_CREDENTIALS_H_
