// The files that a server's TLS needs.

#ifndef RUNTIME_SERVER_TLS_FILES_H_
#define RUNTIME_SERVER_TLS_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/server/security_options.h"

namespace folio {

// The contents of the files, in PEM.
struct TlsFiles {
  std::string cert_chain;
  std::string key;
  std::string client_ca;  // Empty: clients need no certificate.
};

// Reads them, and tries whether TLS can work with them: they hold certificates
// and an unencrypted key, the key is that of the first certificate, and both
// are strong enough for OpenSSL. INVALID_ARGUMENT, or the status of a file that
// can't be read, names the flag, the file and the reason.
// REQUIRES: options.has_tls()
absl::StatusOr<TlsFiles> ReadTlsFiles(const SecurityOptions& options);

}  // namespace folio

#endif  // RUNTIME_SERVER_TLS_FILES_H_
