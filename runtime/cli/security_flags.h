// Flags for TLS and tokens, of servers and of those who call them.

#ifndef RUNTIME_CLI_SECURITY_FLAGS_H_
#define RUNTIME_CLI_SECURITY_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/client/client_options.h"
#include "runtime/server/security_options.h"

namespace folio {

// What a server shows and wants to see, into `options`, which must outlive
// `app`'s parsing. Whether the flags go together, CheckSecurity tells.
void AddSecurityFlags(CLI::App& app, SecurityOptions& options);

struct ClientSecurityFlags {
  ClientOptions options;   // Its token is not set by flags.
  std::string token_file;  // A token, and nothing else; empty: not given.
  bool insecure = false;
};

// How to be let in by the server that `server` (--server) names. `flags` must
// outlive `app`'s parsing.
void AddClientSecurityFlags(CLI::App& app, CLI::Option* server,
                            ClientSecurityFlags& flags);

// With the token: that of the file, or else of the environment variable
// FOLIO_TOKEN. INVALID_ARGUMENT, or the status of a file that can't be read,
// says what is wrong; also when the token would go to `server` (ADDR:PORT)
// through a network that can read it.
absl::StatusOr<ClientOptions> ClientOptionsOf(const ClientSecurityFlags& flags,
                                              const std::string& server);

}  // namespace folio

#endif  // RUNTIME_CLI_SECURITY_FLAGS_H_
